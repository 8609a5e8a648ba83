# SPDX-License-Identifier: GPL-3.0-or-later
"""Short and long children's stories from a small grammar.

A story has a hero, a friend, a place and a plot; long ones also have
obstacles, helpers and pauses on the way. `[a|b]` in a template is a choice,
`{name}` a slot filled from the story's own cast, so names, kinds and pronouns
agree from the first line to the last.
"""
import re

from phrases import article, expand, sentence_case

SHE = ("she", "her", "her")
HE = ("he", "him", "his")
GIRLS = ("Mina Lily Rosa Ella Nora Tilda Ida Clara Wren Hazel Ivy Juno Maya Olive Pia Ruby Sana Tess Vera Zoe Anna "
         "Bella Dora Flora").split()
BOYS = ("Tom Finn Oscar Hugo Leo Max Otto Pip Rolf Sam Theo Will Arlo Ben Caleb Dan Emil Felix Gus Henry Jack Karl "
        "Milo Ned").split()
ANIMALS = ("fox rabbit bear mouse owl hedgehog squirrel badger otter deer cat dog duck goose frog turtle hen lamb pony "
           "goat wolf beaver mole sparrow crow robin penguin elephant lion tiger monkey giraffe hummingbird parrot "
           "donkey panda").split()
PEOPLE = {"girl": SHE, "boy": HE, "baker": None, "sailor": None, "farmer": None, "gardener": None, "miller": None,
          "shepherd": None, "painter": None, "clockmaker": None, "teacher": None, "tailor": None, "queen": SHE,
          "king": HE, "princess": SHE, "prince": HE, "robot": None, "dragon": None, "wizard": HE, "giant": HE,
          "knight": None, "captain": None, "carpenter": None, "musician": None}
TRAITS = "little brave kind curious quiet clever cheerful gentle shy careful young patient".split()

# place: its description, and spots in it
PLACES = {
    "forest": ("at the edge of a [green|deep|quiet] forest", ["under the old oak", "beside the stream", "behind the mossy stones", "near the hollow log"]),
    "village": ("in a small village [between two hills|by a river]", ["behind the mill", "beside the well", "near the bakery", "at the market"]),
    "harbour": ("in a [busy|small|windy] harbour by the sea", ["under the pier", "beside the fishing boats", "near the lighthouse", "behind the net shed"]),
    "meadow": ("in a [wide|sunny|bright] meadow", ["in the tall grass", "beside the pond", "under the apple tree", "near the stone wall"]),
    "mountain": ("high on a [snowy|quiet|misty] mountain", ["beside the cold spring", "under the pine trees", "near the shepherd's hut", "behind the big rock"]),
    "island": ("on a small island in the [blue|wide] sea", ["on the white beach", "beside the tide pool", "under the palm tree", "near the old jetty"]),
    "farm": ("on a farm with a red barn", ["in the hay barn", "beside the duck pond", "behind the stable", "near the wooden gate"]),
    "garden": ("in a garden full of [roses|sunflowers|bees]", ["under the rose bush", "beside the fountain", "behind the greenhouse", "near the garden wall"]),
    "town": ("in a town with [narrow streets|crooked roofs|seven bridges]", ["under the stone bridge", "beside the clock tower", "near the library", "behind the theatre"]),
    "valley": ("in a [green|long|peaceful] valley", ["beside the river", "under the willow tree", "near the wooden bridge", "behind the windmill"]),
}

# object: looks, owner, what the owner says of it, what it does in the end
OBJECTS = {
    "key": ("golden|rusty|small", "the librarian", "It opens the oldest door in the library", "The key turned with a soft click, and behind the door was a room full of books that nobody had read for a hundred years."),
    "lantern": ("brass|bright|old", "the lighthouse keeper", "Without it the boats cannot find the harbour", "That night the lantern shone over the water, and every boat came home safely."),
    "map": ("torn|yellow|secret", "the old captain", "It shows the way to the hidden bay", "They followed the map past three tall rocks and came to a hidden bay where the water was as clear as glass."),
    "bell": ("silver|little|cracked", "the bell ringer", "It calls everyone to supper", "In the evening the bell rang out clear and sweet, and everyone came running to supper."),
    "coin": ("silver|strange|shiny", "the baker", "My grandmother gave it to me for luck", "The baker laughed with joy and baked a cake with a star of sugar on the top."),
    "button": ("blue|wooden|shiny", "the tailor", "It belongs on the mayor's best coat", "The tailor sewed the button on with red thread, and the coat looked as good as new."),
    "book": ("thick|green|dusty", "the teacher", "I read from it every winter evening", "The teacher opened the book and read aloud until the stars came out."),
    "letter": ("folded|long|sealed", "the old sailor", "It is from my sister, who lives across the sea", "The old sailor read the letter twice, and a slow smile spread over his face."),
    "feather": ("white|long|golden", "the great swan", "I lost it in the spring wind", "The swan spread her wings, and the feather shone like snow in the sun."),
    "shell": ("pink|curly|smooth", "the fisherman", "When you hold it to your ear, it sings of the sea", "They all held the shell to their ears, one after the other, and listened to the song of the sea."),
    "stone": ("round|warm|sparkling", "the stonecutter", "It is the last stone of the little bridge", "The stone fitted perfectly, and the little bridge was whole again."),
    "hat": ("red|tall|straw", "the scarecrow's maker", "Without it the scarecrow looks so sad", "With the hat on its head, the scarecrow seemed to smile at the whole field."),
    "scarf": ("striped|woollen|green", "the shepherd", "My daughter made it for the cold nights", "The shepherd wrapped the scarf around his neck and was warm all winter."),
    "kite": ("red|paper|yellow", "the twins from the hill", "We made it with our father", "The kite danced high above the roofs, and everyone below clapped and cheered."),
    "drum": ("small|painted|round", "the music master", "We need it for the summer parade", "The drum led the parade through the streets, boom, boom, boom, and everybody marched along."),
    "flute": ("wooden|silver|thin", "the musician", "I play it when the moon is full", "The flute sang so softly that even the wind stood still to listen."),
    "box": ("tiny|carved|locked", "the clockmaker", "There is a song inside it", "When the box was opened, a tiny song rose into the air, and everyone was silent until it ended."),
    "basket": ("big|round|woven", "the apple seller", "I carry my apples in it", "The apple seller filled the basket to the top and gave the sweetest apples away."),
    "ball": ("red|bouncy|soft", "the children of the school", "We cannot play without it", "Soon the ball was flying through the air again, and the yard was full of laughter."),
    "clock": ("wooden|ticking|little", "the stationmaster", "Without it the trains do not know when to leave", "The clock began to tick again, and the evening train left exactly on time."),
    "mirror": ("round|silver|old", "the lady of the castle", "It shows everyone with a kind face", "They looked into the mirror together, and two happy faces looked back."),
    "compass": ("brass|small|old", "the ship's captain", "It always points to the north", "With the compass in her hand, the captain sailed straight through the fog."),
    "rope": ("long|strong|thick", "the ferryman", "It pulls the ferry over the river", "The rope was tied fast, and the ferry crossed the river with everyone on board."),
    "teapot": ("blue|round|chipped", "the old aunt", "I have poured tea from it for fifty years", "The teapot steamed on the table, and there was tea and honey cake for all."),
    "candle": ("tall|white|honey", "the miller", "I light it when the nights are long", "The candle burned all night in the window, small and warm and bright."),
    "blanket": ("soft|blue|patchwork", "the baby's mother", "My baby cannot sleep without it", "The baby held the blanket tightly and fell asleep with a smile."),
    "umbrella": ("yellow|big|striped", "the postman", "The letters get wet without it", "When the rain came, every letter stayed dry under the umbrella."),
    "star": ("fallen|tiny|glowing", "the night", "Its place is in the sky", "The star rose slowly, higher and higher, and found its place among its sisters."),
    "seed": ("black|tiny|shining", "the gardener", "It is the last of its kind", "In the spring the seed became a flower as blue as the evening sky."),
    "acorn": ("large|brown|smooth", "the squirrel family", "We saved it for the winter", "They planted the acorn on the hill, and after many years a strong oak stood there."),
    "pearl": ("white|glowing|round", "the old pearl diver", "I found it when I was young", "The pearl shone in the diver's hand like a small moon."),
    "whistle": ("tin|loud|little", "the train driver", "It tells everyone that the train is coming", "The whistle blew, and the little train rolled happily over the bridge."),
    "ribbon": ("red|silk|long", "the dancer", "I wear it at every summer dance", "The ribbon flew behind the dancer like a flame, and nobody could look away."),
    "crown": ("paper|golden|small", "the young queen", "It was my grandmother's", "The queen put on the crown and invited everyone to a feast in the castle garden."),
    "glove": ("warm|brown|single", "the woodcutter", "My left hand is always cold without it", "The woodcutter put on the glove and cut enough wood for the whole winter."),
    "violin": ("brown|small|shining", "the street musician", "It is my only friend", "The violin sang in the square that evening, and all the windows opened to hear it."),
    "lamp": ("green|oil|dusty", "the night watchman", "I carry it through the dark streets", "The lamp glowed in the dark streets, and nobody was afraid of the night."),
    "boat": ("wooden|toy|blue", "the ferryman's son", "I built it with my own hands", "The boat sailed across the pond with a leaf for a flag, and everyone waved."),
}

# things to build: materials, first failure, mending, use
BUILDS = {
    "boat": ("[old planks|pine boards] and [rope|tar]", "it leaked and sank in the shallow water", "closed every gap with wax", "sailed across the lake with the wind behind them"),
    "kite": ("[paper|cloth] and two thin sticks", "it fell straight into a bush", "gave it a longer tail", "watched it climb higher than the birds"),
    "bridge": ("[logs|flat stones] and strong rope", "it fell into the stream with a splash", "set two heavy stones under it", "walked over the stream with dry feet"),
    "house": ("[clay|wood] and [straw|branches]", "the wind blew the roof away", "tied the roof down with rope", "sat inside, warm and dry, while the rain fell"),
    "cart": ("a wooden box and four wheels", "a wheel came off and rolled down the hill", "fixed the wheel with a wooden pin", "carried all the pumpkins to the market"),
    "raft": ("[barrels|logs] and rope", "it turned upside down", "tied the logs side by side", "floated slowly down the river in the sun"),
    "windmill": ("[canvas|cloth] and long poles", "the sails would not turn", "turned it to face the west wind", "ground the corn for the whole village"),
    "swing": ("a board and two ropes", "one of the ropes slipped", "tied a better knot", "flew up until they could see over the wall"),
    "treehouse": ("boards and [nails|rope]", "the floor was not level and everything rolled out", "put a beam under the low side", "slept among the leaves and counted the stars"),
    "telescope": ("a long tube and two glasses", "everything looked upside down and blurry", "moved the glasses a little apart", "looked at the mountains of the moon"),
    "sledge": ("two bent boards and a rope", "it stopped in the soft snow", "rubbed the boards with wax", "flew down the white hill, laughing all the way"),
    "clock": ("wheels and springs from an old box", "it ran backwards", "turned the smallest wheel around", "heard it strike twelve exactly at noon"),
}

GOALS = {
    "the sea": ("The sea was wider than anything {he} had ever seen, and the waves rolled in like blue hills.", "how big the sea was"),
    "the snow": ("White flakes were falling everywhere, and the whole world was soft and silent.", "how quiet the snow was"),
    "the moon up close": ("From the top, the moon looked so near that {he} could almost touch it.", "how bright the moon was"),
    "the big city": ("The city glittered with a thousand windows, and music came from every street.", "how the city never slept"),
    "a rainbow": ("Then the sun came through the rain, and a great rainbow stood over the valley.", "how the colours had shone"),
    "the northern lights": ("Green and violet lights danced across the sky without a sound.", "how the sky had danced"),
    "a whale": ("A great whale rose from the water, breathed out a cloud of mist, and sank again.", "how the whale had breathed"),
    "the top of the mountain": ("From the top {he} could see the whole world, with tiny houses and silver rivers.", "how small everything looked from above"),
    "the waterfall": ("The waterfall thundered down the rocks, and a fine spray cooled {his} face.", "how the water had sung"),
    "the lighthouse": ("The lighthouse stood tall and white, and its light turned slowly over the waves.", "how the light never rested"),
    "the great library": ("There were shelves up to the ceiling, and every book smelled of dust and wonder.", "how many books there were"),
    "the flower fields": ("Red, yellow and blue flowers covered the hills as far as {he} could see.", "how sweet the wind had smelled"),
}

FEARS = {
    "the dark": ("every shadow looked like a monster", "[counted the stars|looked for the moon]", "the dark was full of small, friendly lights"),
    "thunder": ("every rumble made {him} hide under the bed", "[counted slowly between the flash and the thunder|sang a song louder than the thunder]", "the thunder was only the sky clearing its throat"),
    "deep water": ("{he} never went further than the first wet stone", "[put one foot in, and then the other|floated on {his} back and breathed slowly]", "the water held {him} up like a soft bed"),
    "heights": ("{his} knees shook on every ladder", "[looked straight ahead|took one step at a time]", "the view was worth every shaking step"),
    "strangers": ("{he} hid behind the door whenever somebody knocked", "[said one small hello|smiled first]", "most strangers were only friends that {he} had not met yet"),
    "the forest": ("every sound between the trees made {him} jump", "[listened until {he} knew every sound|followed the path of white stones]", "the forest was only a big house without a roof"),
    "singing aloud": ("{his} voice shook as soon as anyone listened", "[sang very softly at first|closed {his} eyes and thought of home]", "a shaky song is still a song"),
    "being alone": ("the house felt too big without anyone in it", "[drew pictures|talked to the clock on the wall]", "a quiet hour can be a good friend"),
}

TREATS = ["apple pie", "honey cake", "berry jam", "roast chestnuts", "pumpkin soup", "pears", "walnuts", "cheese", "plum cake", "strawberries"]

# on the way: (problem, what was done), with the friend present
OBSTACLES = [
    ("[Soon|After a while] they came to a river, and the bridge was broken.", "{N} found a fallen tree, and together they pushed it across the water. [Step by step|Very slowly], they walked to the other side."),
    ("A thick fog rolled in, and they could not see the path.", "{F} had a good idea. \"Let us hold hands and follow the sound of the stream,\" {fhe} said, and so they did until the fog was gone."),
    ("Then it began to rain [heavily|in big cold drops].", "They hid under a large leaf and told each other riddles until the sun came back."),
    ("The path went up a steep hill, and their legs grew tired.", "\"Only ten more steps,\" said {N}, again and again, until they stood at the top."),
    ("In the middle of the road sat a big goose who would not move.", "{N} bowed politely and asked how her day was. Nobody had ever asked the goose that, so she stepped aside and let them pass."),
    ("A tall gate closed the way, and on it was a riddle: \"What has hands but cannot clap?\"", "{F} thought for a long time. \"A clock!\" {fhe} cried, and the gate swung open."),
    ("At the crossroads there were three signs, and all of them were blank.", "{N} looked at the moss on the trees and knew which way was north. \"This way,\" {he} said, and {he} was right."),
    ("A strong wind came up and tried to blow them off the path.", "They held on to each other and walked slowly, and the wind grew tired before they did."),
    ("They heard a strange noise behind the bushes, and both of them stood still.", "It was only a small lamb that had lost its mother. They led it back to the flock, and the shepherd thanked them."),
    ("Soon it was too dark to see.", "Hundreds of fireflies rose out of the grass, and their small lights showed the way."),
    ("A deep hole lay across the road.", "{F} found a long board, and {N} held it still while they crossed, one after the other."),
    ("The boat that should take them across had no oars.", "They used two broad branches, and they sang to keep in time."),
    ("A gate keeper asked for a coin, but they had none.", "{N} offered to sweep the steps instead. The gate keeper was so pleased that he let them in and gave them an apple each."),
    ("By noon they had nothing left to drink.", "{N} listened carefully and heard water under the stones. They dug with their hands until a clear spring came out."),
]

HELPERS = [
    ("an old owl", "\"[Look|Go] where the sun goes down,\" said the owl. \"The quiet places keep the most secrets.\""),
    ("a busy ant", "\"I have no time,\" said the ant, \"but walk along the wall and you will find what you need.\""),
    ("a sleepy cat", "The cat opened one eye. \"I saw something near the water,\" she said, and went back to sleep."),
    ("a friendly postman", "\"I know every house here,\" said the postman. \"Ask at the one with the blue door.\""),
    ("a snail", "\"I am slow,\" said the snail, \"so I see everything. Follow the silver trail.\""),
    ("a little bird", "The bird sang three notes and flew ahead from tree to tree, so that they could follow."),
    ("an old woman with a basket", "\"You look hungry,\" she said, and gave them bread. \"Keep the river on your left, and you cannot go wrong.\""),
    ("a turtle", "\"Do not hurry,\" said the turtle. \"Those who hurry walk past the best things.\""),
    ("a boy with a fishing rod", "\"Try the old bridge,\" said the boy. \"Lost things often stop there.\""),
    ("a white horse", "\"Climb on my back,\" said the horse, and it carried them over the fields as fast as the wind."),
]

PAUSES = [
    "At noon they sat down in the [grass|shade] and ate bread and {treat}. [The bees hummed around them|A cool wind blew over the grass], and for a while nobody said a word.",
    "When evening came, they made a small fire. The flames crackled, and {F} told a story about [the first winter|the man in the moon|a fish who could sing].",
    "That night they slept under the open sky. {N} counted the stars until {his} eyes closed.",
    "The next morning the sun rose red and gold. They washed their faces in the [stream|cold water] and went on.",
    "On the way they sang [an old song|a song about the spring|a funny song about a cow], and the road felt shorter.",
    "\"Are you tired?\" asked {N}. \"A little,\" said {F}, \"but I do not want to stop now.\"",
    "\"Do you think we will make it?\" asked {F}. {N} nodded. \"If we keep going, we will,\" {he} said.",
]

MORALS = {
    "find": ["A thing is worth most when it is with the one who loves it.", "Honest hands find good friends."],
    "lose": ["What is lost can be found again, if you look with patience and with friends.", "A lost thing is easier to find with two pairs of eyes."],
    "help": ["Even the smallest help can be the greatest gift.", "A friend in need is a chance to be brave."],
    "build": ["Those who try again build better.", "Every mistake is a step on the way."],
    "see": ["The longest road begins with one small step.", "Some things must be seen with your own eyes."],
    "storm": ["No storm lasts forever.", "In a storm, a small light and a good friend are enough."],
    "fear": ["Being brave does not mean that you are never afraid.", "Courage begins with one small step."],
    "gift": ["The best gifts are made with love.", "A gift from the heart needs no ribbon."],
    "race": ["It is good to win, but it is better to be kind.", "Nobody loses who helps a friend."],
    "share": ["What we share tastes twice as good.", "A full table is happier than a full pantry."],
}
# What one might ask for without naming a hero.
THEMES = {"help": ["friendship", "two friends", "good friends"], "share": ["sharing", "friendship"], "fear": ["courage", "being brave"],
          "see": ["a journey", "an adventure", "a long journey"], "storm": ["a storm", "a stormy night"], "race": ["a race"],
          "gift": ["a gift", "a birthday"]}
PLOTS = list(MORALS)


class Story:
    """One story's parameters; `held_out` marks combinations kept for evaluation."""

    def __init__(self, rng):
        self.rng = rng
        self.plot = rng.choice(PLOTS)
        self.kind = rng.choice(ANIMALS if rng.random() < 0.6 else list(PEOPLE))
        self.friend_kind = rng.choice([k for k in (ANIMALS if rng.random() < 0.7 else list(PEOPLE)) if k != self.kind])
        self.name, self.pronouns = self.person(self.kind)
        self.friend, self.friend_pronouns = self.person(self.friend_kind)
        while self.friend == self.name:
            self.friend, self.friend_pronouns = self.person(self.friend_kind)
        self.trait = rng.choice(TRAITS)
        self.place = rng.choice(list(PLACES))
        self.object = rng.choice(list(OBJECTS))
        self.build = rng.choice(list(BUILDS))
        self.goal = rng.choice(list(GOALS))
        self.fear = rng.choice(list(FEARS))
        self.treat = rng.choice(TREATS)
        self.look = rng.choice(OBJECTS[self.object][0].split("|"))
        he, him, his = self.pronouns
        fhe, fhim, fhis = self.friend_pronouns
        self.slots = dict(
            N=self.name, k=self.kind, he=he, him=him, his=his, He=he.capitalize(), His=his.capitalize(),
            F=self.friend, fk=self.friend_kind, fhe=fhe, fhim=fhim, fhis=fhis, fHe=fhe.capitalize(),
            afk=article(self.friend_kind), o=self.object, ao=article(f"{self.look} {self.object}"), look=self.look,
            owner=OBJECTS[self.object][1], Owner=sentence_case(OBJECTS[self.object][1]), b=self.build,
            ab=article(self.build), goal=self.goal, fear=self.fear, treat=self.treat,
        )

    def person(self, kind):
        pronouns = PEOPLE.get(kind) or self.rng.choice((SHE, HE))
        return self.rng.choice(GIRLS if pronouns is SHE else BOYS), pronouns

    @property
    def held_out(self):
        """Pairs of hero and main thing that training never sees together."""
        return (hash_of(self.kind) * 7 + hash_of(self.thing)) % 11 == 0

    @property
    def thing(self):
        return {"find": self.object, "lose": self.object, "build": self.build, "see": self.goal, "fear": self.fear,
                "share": self.treat, "gift": self.friend_kind, "help": self.friend_kind}.get(self.plot, self.plot)

    def say(self, template):
        return expand(template, self.rng, self.slots)

    def topic(self):
        """What a user would ask for, in words."""
        kind = article(self.kind if self.rng.random() < 0.75 else f"{self.trait} {self.kind}")
        if self.rng.random() < 0.12:
            kind += f" [named|called] {self.name}"
        plain = self.rng.random()
        if plain < 0.15:
            return self.say(kind)
        if plain < 0.2:
            return self.rng.choice([self.name, f"{self.name} and {self.friend}", f"{self.name} the {self.kind}"])
        if plain < 0.27 and self.plot in ("find", "lose", "build", "see"):
            return {"build": article(self.build), "see": self.goal}.get(self.plot, article(self.object))
        if plain < 0.3 and self.plot in THEMES:
            return self.rng.choice(THEMES[self.plot])
        tail = {
            "find": ["who finds {a_o}", "and {a_o}", "who found {a_o}"],
            "lose": ["who loses {a_o}", "and a lost {o}", "who lost {a_o}"],
            "help": ["who helps {afk}", "and {afk}", "who helped {afk}"],
            "build": ["who builds {ab}", "and {ab}", "who wants to build {ab}"],
            "see": ["who wants to see {goal}", "and {goal}", "who travels to see {goal}"],
            "storm": ["in a storm", "and a storm", "and a stormy night"],
            "fear": ["who is afraid of {fear}", "who was afraid of {fear}", "and {fear}"],
            "gift": ["who looks for a gift", "and a birthday gift", "who makes a gift for {afk}"],
            "race": ["and a race", "who runs a race", "in a race with {afk}"],
            "share": ["who learns to share", "and some {treat}", "who shares {treat}"],
        }[self.plot]
        self.slots["a_o"] = article(self.object)
        return self.say(f"{kind} {self.rng.choice(tail)}")

    def title(self):
        return {
            "find": f"The {self.kind.title()} and the {self.object.title()}",
            "lose": f"The Lost {self.object.title()}",
            "build": f"{self.name} and the {self.build.title()}",
        }.get(self.plot, f"{self.name} the {self.kind.title()}")

    # Beats. Each returns one paragraph.

    def opening(self):
        where = PLACES[self.place][0]
        return self.say(self.rng.choice([
            f"Once upon a time there was {article(self.trait + ' ' + self.kind)} named {{N}}, who lived {where}.",
            f"Once upon a time, {where}, there lived {article(self.trait + ' ' + self.kind)} named {{N}}.",
            f"{{N}} was {article(self.trait + ' ' + self.kind)} who lived {where}.",
            f"Long ago, {where}, lived {article(self.trait + ' ' + self.kind)} called {{N}}.",
        ])) + " " + self.say(self.rng.choice([
            "{His} best friend was {afk} named {F}.",
            "{He} had a good friend, {afk} called {F}.",
            "Every day {he} met {his} best friend {F}, {afk} with a [warm laugh|soft voice|big heart].",
        ]))

    def spot(self):
        return self.rng.choice(PLACES[self.place][1])

    def travel(self, count):
        rng, out = self.rng, []
        obstacles = rng.sample(OBSTACLES, count)
        helper_at = rng.randrange(count) if count else -1
        for i, (problem, solution) in enumerate(obstacles):
            out.append(self.say(problem) + " " + self.say(solution))
            if i == helper_at:
                who, line = rng.choice(HELPERS)
                out.append(self.say(f"[Further on|A little later|Behind the next hill] they met {who}. " + line))
            elif rng.random() < 0.7:
                out.append(self.say(rng.choice(PAUSES)))
        return out

    def ending(self):
        moral = self.rng.choice(MORALS[self.plot])
        return self.say(self.rng.choice([
            "From that day on, {N} and {F} were [better friends than ever|never far apart].",
            "{N} and {F} walked home together, tired and happy.",
            "And if you ever visit them, they will tell you all about it.",
            "That night {N} fell asleep with a smile.",
            "\"What a day,\" said {F}. \"The best one yet,\" said {N}.",
        ])) + " " + self.rng.choice([moral, moral, "The end."])

    def paragraphs(self, obstacles):
        return [self.opening(), *getattr(self, "plot_" + self.plot)(obstacles), self.ending()]

    def plot_find(self, n):
        look, owner, words, end = OBJECTS[self.object]
        yield self.say(f"One [morning|day|evening], {{N}} found {{ao}} {self.spot()}. " + self.rng.choice([
            "\"Who could have lost this {o}?\" {he} wondered.",
            "It was the most beautiful {o} {he} had ever seen, but {he} knew that it belonged to somebody.",
            "{He} turned it over and over. \"Somebody must be missing it,\" {he} said."]))
        yield self.say("{N} showed the {o} to {F}. " + self.rng.choice([
            "\"Let us find the owner together,\" said {F}.",
            "\"We should [give it back|bring it back],\" said {F}, and {N} agreed.",
            "\"I have never seen it before,\" said {F}, \"but I will help you to find the owner.\""]))
        if n:
            yield from self.travel(n)
        else:
            yield self.say(f"They asked [everyone they met|at every door], and at last they looked {self.spot()}.")
        if self.object == "star":
            yield self.say("At last they climbed the highest hill and held the star up to the night sky. " + end)
        else:
            yield self.say(f"At last they met {{owner}}. \"[That is my {{o}}|My {{o}}! You found it]!\" [cried|said] {{owner}}. \"{words}.\" {{N}} gave it back at once.")
            yield end

    def plot_lose(self, n):
        yield self.say("{N} had {ao} that {he} [loved more than anything|carried everywhere|had got from {his} grandmother]. But one [morning|day|evening] the {o} was gone. " + self.rng.choice([
            "{He} looked under the bed and behind the door, but it was not there.",
            "{N} turned all {his} pockets inside out and found only a crumb."]))
        yield self.say("\"Do not be sad,\" said {F}. \"[We will look for it together|I will help you look]. [Two find more than one|It cannot be far].\"")
        spots = self.rng.sample(PLACES[self.place][1], 3)
        yield self.say(f"They looked {spots[0]}, but they found only [leaves|an old shoe|dust]. They looked {spots[1]}, but they found only [a sleeping frog|a grey feather|pebbles].")
        if n:
            yield from self.travel(n)
        yield self.say(f"[At last|Then], {spots[2]}, {{F}} saw something [shining|small|half hidden]. It was the {{o}}! " + self.rng.choice([
            "{N} [jumped for joy|laughed aloud] and hugged {F}.",
            "\"You found it!\" cried {N}, and {he} danced in a circle."]))

    def plot_help(self, n):
        trouble = self.rng.choice([
            ("had hurt {fhis} foot and could not walk", "made a bed of soft moss on a little cart and pulled {F} home"),
            ("had lost the way home", "drew a map in the sand and walked with {fhim} all the way"),
            ("was ill in bed and could not eat", "cooked a pot of warm soup and read {fhim} stories"),
            ("had to gather the harvest alone before the rain", "worked beside {fhim} until the last basket was full"),
            ("was stuck in the mud up to {fhis} knees", "tied a rope to a tree and pulled until {F} was free"),
            ("had no roof because the wind had taken it", "carried boards and nails and mended the roof with {fhim}"),
        ])
        yield self.say(f"One [morning|day|evening], {{N}} heard that {{F}} {trouble[0]}. " + self.rng.choice([
            "\"I must help {fhim},\" said {N}, and {he} set out at once.",
            "{N} did not wait a moment and ran to {fhis} side."]))
        yield self.say("\"Thank you for coming,\" said {F}. \"[I did not know what to do|I thought nobody would hear me].\"")
        if n:
            yield self.say("But what {F} needed was far away, and when {fhe} felt a little better they set out together.")
            yield from self.travel(n)
        yield self.say(f"{{N}} {trouble[1]}. " + self.rng.choice([
            "It took a long time, but {he} never complained.", "Little by little, everything was well again."]))
        yield self.say("\"How can I ever thank you?\" asked {F}. \"You would do the same for me,\" said {N}.")

    def plot_build(self, n):
        material, failure, mend, use = BUILDS[self.build]
        yield self.say(f"One day {{N}} decided to build {{ab}}. {{He}} gathered {material} and worked [all day|from morning to evening].")
        yield self.say(f"But when it was ready, {failure}. " + self.rng.choice([
            "{N} sat down and sighed. \"It will never work,\" {he} said.",
            "{N} was sad. \"I am no good at this,\" {he} said."]) + " " + self.rng.choice([
            "\"Try again,\" said {F}. \"I will help you.\"", "{F} looked at it closely. \"It is almost right,\" {fhe} said."]))
        if n:
            yield self.say("They needed better things to mend the {b}, so they set out to find them.")
            yield from self.travel(n)
            yield self.say("When they came home, they had everything they needed.")
        yield self.say(f"So they took the {{b}} apart and began again. This time they {mend}, and the {{b}} was [strong|good|perfect].")
        yield self.say(f"In the end they {use}.")

    def plot_see(self, n):
        sight, tale = GOALS[self.goal]
        yield self.say("{N} had one great wish. {He} wanted to see {goal}. " + self.rng.choice([
            "\"It is a long way,\" said {F}, \"but I will come with you.\"",
            "\"Then let us go,\" said {F}. \"I have always wanted to see it too.\""]))
        yield self.say("They packed bread and {treat}, locked the door and set out [at sunrise|early in the morning].")
        yield from self.travel(max(n, 1))
        yield self.say("At last they were there. " + sight + " " + self.rng.choice([
            "They stood still and did not say a word.", "\"It is even better than I dreamed,\" whispered {N}."]))
        yield self.say(f"When they were home again, {{N}} told everyone {tale}.")

    def plot_storm(self, n):
        yield self.say("One evening dark clouds came over the hills, and a great storm began. The wind [howled|roared], and the rain beat on the windows.")
        yield self.say("Then {N} remembered that {F} was still outside. {He} took a lantern and a [coat|rope] and ran into the storm, calling {fhis} name.")
        yield self.say(f"{{He}} found {{F}} {self.spot()}, cold and wet. \"I knew that you would come,\" said {{F}}.")
        if n:
            yield self.say("They could not go back the same way, because the road was under water.")
            yield from self.travel(n)
        yield self.say("They [sat by the fire|wrapped themselves in blankets] and drank hot [milk|tea] until the storm was over. In the morning the sky was blue, and the world smelled of wet earth.")

    def plot_fear(self, n):
        effect, trick, lesson = FEARS[self.fear]
        yield self.say(f"But {{N}} had a secret. {{He}} was afraid of {{fear}}, and {effect}.")
        yield self.say("One day {F} asked why {he} looked so worried, and {N} told {fhim} everything. " + self.rng.choice([
            "\"Everybody is afraid of something,\" said {F}. \"We will try it together.\"",
            "{F} did not laugh. \"I will stay beside you,\" {fhe} said."]))
        if n:
            yield self.say("To practise, they went on a long walk.")
            yield from self.travel(n)
        yield self.say(f"[The next day|That evening] {{N}} took a deep breath. {{He}} {trick}, and {{F}} stayed close. The first time was hard, the second time was easier, and the third time {{he}} even smiled.")
        yield self.say(f"{{N}} had learned that {lesson}.")

    def plot_gift(self, n):
        gift, how = self.rng.choice([
            ("a song", "wrote a song with three verses and learned it by heart"),
            ("a picture", "painted the two of them under a yellow sun"),
            ("a warm scarf", "knitted a scarf in red and blue"),
            ("a cake", "baked a cake with nuts and honey"),
            ("a wooden bird", "carved a small bird out of soft wood"),
            ("a garland", "made a garland of the first spring flowers"),
        ])
        yield self.say("Soon it was {F}'s birthday, and {N} had no gift. {He} went to the market, but everything cost too much. " + self.rng.choice([
            "\"What can I give?\" {he} wondered.", "{He} sat down on the steps and thought."]))
        if n:
            yield self.say("Then {N} and {F} went for a long walk, and {N} hoped to find an idea on the way.")
            yield from self.travel(n)
            yield self.say("On the way home, {N} suddenly knew what to do.")
        else:
            yield self.say("Then {he} had an idea. \"I do not need money,\" {he} said. \"I can make something myself.\"")
        yield self.say(f"{{N}} {how}. It was not perfect, but it was made with care.")
        yield self.say(f"On the birthday {{N}} gave {{F}} {gift}. {{F}} [was silent for a moment|held it close]. \"It is the best gift I ever got,\" {{fhe}} said.")

    def plot_race(self, n):
        yield self.say("In the summer there was a great race, and everyone came to watch. {N} had practised for weeks, and {F} wanted to run too.")
        if n:
            yield self.say("The way was long, and it was a race for pairs, so the two friends ran side by side.")
            yield from self.travel(n)
        yield self.say("\"Ready, steady, go!\" cried the judge, and they ran [like the wind|as fast as they could]." if not n else
                       "At last they could see the finish, and they ran [like the wind|as fast as they could].")
        yield self.say("Shortly before the end, {F} [stumbled and fell|lost a shoe]. {N} could have won, but {he} stopped and turned around. \"Take my hand,\" {he} said.")
        yield self.say("They crossed the line together, last of all, and the crowd cheered louder for them than for the winner.")

    def plot_share(self, n):
        yield self.say("One day {N} had a whole [basket|plate|table] full of {treat}. \"It is all mine,\" {he} thought, and {he} hid it [in the cupboard|under the bed].")
        yield self.say("In the evening {F} came by. {fHe} was tired and hungry, and {fhe} sat down quietly by the door. {N} looked at {F}, and suddenly the {treat} did not [taste good|seem so important] any more.")
        if n:
            yield self.say("\"I want to give you something,\" said {N}, \"but let us eat it in a beautiful place.\" So they packed the {treat} and set out.")
            yield from self.travel(n)
        yield self.say("\"Please have some,\" said {N}. \"There is enough for both of us.\" They shared the {treat} and laughed until it was late.")
        yield self.say("\"It is much better this way,\" said {N}.")


def hash_of(text):
    value = 0
    for char in text:
        value = (value * 31 + ord(char)) % 1000003
    return value


ASK = [
    "Tell me {L} about {T}.", "Tell me {L} about {T}", "Can you tell me {L} about {T}?", "Please tell me {L} about {T}.",
    "I would like {L} about {T}.", "Write {L} about {T}.", "Could you tell me {L} about {T}, please?",
    "I want to hear {L} about {T}.", "Do you know {L} about {T}?", "Make up {L} about {T}.", "Give me {L} about {T}.",
    "Hello! Tell me {L} about {T}.", "Let us have {L} about {T}.",
]
LENGTHS = {
    "short": ["a short story", "a very short story", "a little story", "a short tale"],
    "normal": ["a story", "a story", "a story", "a bedtime story", "a nice story", "a tale"],
    "long": ["a long story", "a long story", "a long bedtime story", "a really long story", "a longer story", "a long tale"],
}


def story_text(story, length):
    obstacles = {"short": 0, "normal": story.rng.choice((0, 1)), "long": story.rng.choice((3, 4))}[length]
    parts = story.paragraphs(obstacles)
    if length == "short":
        return " ".join(parts)
    # Beats are short; two or three make a paragraph.
    out, group = [], []
    for i, part in enumerate(parts):
        group.append(part)
        if len(group) >= (2 if length == "normal" else 3) or i == len(parts) - 1:
            out.append(" ".join(group))
            group = []
    return "\n\n".join(out)


def request(story, length, rng, topic):
    if rng.random() < 0.05:
        return rng.choice(["Tell me {L}.", "Tell me {L}", "Can you tell me {L}?", "I would like {L}, please."]).format(
            L=rng.choice(LENGTHS[length]))
    return rng.choice(ASK).format(L=rng.choice(LENGTHS[length]), T=topic)


def make_story(rng, length=None, held_out=False):
    """(request, reply, story text, Story)

    The reply says first what the story is about. A small model then has its
    hero and thing close by when it begins, and keeps to them.
    """
    length = length or rng.choices(["short", "normal", "long"], [0.4, 0.33, 0.27])[0]
    while True:
        story = Story(rng)
        if story.held_out == held_out:
            break
    topic = story.topic()
    text = re.sub(r" +", " ", story_text(story, length))
    return request(story, length, rng, topic), f"This is a story about {topic}.\n\n{text}", text, story


def echo(rng):
    """Something to repeat word by word: teaches the model to look back and copy."""
    if rng.random() < 0.3:
        text = rng.choice(re.findall(r"[^.!?]+[.!?]", story_text(Story(rng), "short").replace('"', ""))).strip()
    else:
        words = GIRLS + BOYS + ANIMALS + list(PEOPLE) + list(OBJECTS) + list(BUILDS) + TRAITS
        words = rng.sample(words, rng.randrange(3, 17))
        text = rng.choice((", ", " ", " and ")).join(words)
    ask = rng.choice(["Repeat after me: ", "Say this again: ", "Please repeat: ", "Repeat these words: ", "Say: "])
    return ask + text, text


def questions(story):
    """Questions about the story just told, for follow-up turns."""
    out = [
        ("What was the name of the {k}?", "The {k} was called {N}."),
        ("Who was {N}'s friend?", "{N}'s friend was {F}, {afk}."),
        ("What was {F}?", "{F} was {afk}."),
    ]
    if story.plot == "find":
        out.append(("What did {N} find?", "{N} found {ao}."))
        out.append(("Who owned the {o}?", "The {o} belonged to {owner}."))
    if story.plot == "lose":
        out.append(("What did {N} lose?", "{N} lost {ao}."))
    if story.plot == "build":
        out.append(("What did {N} build?", "{N} built {ab}."))
    if story.plot == "see":
        out.append(("What did {N} want to see?", "{N} wanted to see {goal}."))
    if story.plot == "fear":
        out.append(("What was {N} afraid of?", "{N} was afraid of {fear}."))
    if story.plot == "share":
        out.append(("What did they share?", "They shared {treat}."))
    return [(story.say(q), story.say(a)) for q, a in out]
