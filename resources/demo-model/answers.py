# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions and answers about Colibri Workbench and Mixture-of-Experts inference.

A topic has names, question frames and an answer of one to four parts; each part
is a choice of wordings. A held-out draw uses (topic, frame) pairs that training
never sees: the topic is known, the phrasing of the question is not.
"""
from phrases import expand, sentence_case
from stories import hash_of

WHAT = ["What is {x}?", "What's {x}?", "{x}?", "What does {x} mean?", "Can you explain {x}?", "Explain {x}.", "Tell me about {x}.",
        "What exactly is {x}?", "Could you tell me what {x} is?", "Please explain what {x} is.",
        "I do not understand {x}.", "In simple words, what is {x}?", "How would you describe {x}?",
        "What do you mean by {x}?", "I would like to know what {x} is.", "What is meant by {x}?",
        "Can you tell me about {x}?", "What is {x} in a Mixture of Experts?", "I have never heard of {x}. What is it?"]
DOES = ["What does {x} do?", "{x}?", "What's {x}?", "What is {x}?", "What is {x} for?", "How does {x} work?", "Explain {x}.",
        "What happens when I change {x}?", "Can you explain {x}?", "Tell me about {x}.", "Why would I change {x}?",
        "What can I do with {x}?", "I do not understand {x}.", "Could you explain what {x} does?", "What is the use of {x}?",
        "When should I change {x}?", "How should I set {x}?", "What does the knob for {x} do?", "Please explain {x}."]
RAISE = ["What happens if I raise {x}?", "What happens when I increase {x}?", "Should I raise {x}?", "What if I make {x} larger?",
         "Is a higher value of {x} better?", "What is the effect of raising {x}?", "I raised {x}. What will happen?",
         "Does it help to increase {x}?", "What do I gain when I raise {x}?"]
LOWER = ["What happens if I lower {x}?", "What happens when I reduce {x}?", "Should I lower {x}?", "What if I make {x} smaller?",
         "Is a lower value of {x} better?", "What is the effect of lowering {x}?", "I lowered {x}. What will happen?",
         "Does it help to reduce {x}?", "What do I lose when I lower {x}?"]
HOW = ["How do I {x}?", "How can I {x}?", "Can I {x}?", "Is there a way to {x}?", "I want to {x}.", "Where can I {x}?",
       "Please tell me how to {x}.", "What must I do to {x}?", "How does one {x}?", "Show me how to {x}.",
       "I would like to {x}.", "Could you tell me how to {x}?", "What is the best way to {x}?"]
# A name of these topics has two forms, as in "why {does it fall}" and "the reason why {it falls}".
WHY = ["Why {x}?", "Why {x}?", "Can you tell me why {y}?", "I wonder why {y}.", "Do you know why {y}?", "What is the reason that {y}?",
       "How come {y}?", "Please explain why {y}.", "Could you explain why {y}?", "Why {x}? I do not understand it.", "Tell me why {y}.",
       "Explain why {y}.", "What does it mean when {y}?", "{y}. Why?"]

# (frames, names, parts)
TOPICS = [
    # Mixture of Experts
    (WHAT, ["an expert", "a routed expert", "an expert in this model"], [
        "[An expert is a small feed-forward network inside a layer of the model.|An expert is one of the many small networks that a layer can choose from.]",
        "[For every token the router picks a few experts, and only those are computed.|Each token uses only a few of them, so most experts rest at any moment.]",
        "[This demo model has 6 layers with 32 experts each, and every token uses 4 of them.|In this demo model each of the 6 layers has 32 experts.|]"]),
    (WHAT, ["a router", "the router", "the gate", "the routing"], [
        "[The router is a small matrix in each layer that gives every expert a score for the current token.|The router decides which experts work on a token.]",
        "[The experts with the highest scores are chosen, and their results are added with the scores as weights.|It scores all experts and keeps the best few, here the best 4 of 32.]"]),
    (WHAT, ["a Mixture of Experts", "an MoE model", "MoE", "the Mixture of Experts idea", "a mixture of experts model"], [
        "[A Mixture of Experts is a model whose layers hold many small networks, called experts.|In a Mixture of Experts each layer has many small networks instead of one large one.]",
        "A router picks a few of them for each token.",
        "[So the model can be large while each token costs little.|So it knows much but computes little for each token.|This is why it can run from disk: only the chosen experts are needed.]"]),
    (WHAT, ["top-k", "top-4 routing", "top-k routing", "the top k"], [
        "[Top-k means that the router keeps only the k experts with the highest scores.|With top-k routing, k experts are chosen for each token in each layer.]",
        "[In this demo model k is 4.|Here k is 4, so each token uses 24 experts over 6 layers.]"]),
    (WHAT, ["the hit rate", "the expert hit rate", "the cache hit rate", "a hit rate"], [
        "[The hit rate is the share of expert lookups that found the expert already in memory.|The hit rate says how often a needed expert was already in the cache.]",
        "[A prefetched expert that arrives too late counts as a miss.|A miss means that the expert must first be read from disk.]",
        "[The higher it is, the less the model waits for the disk.|With a high hit rate the tokens come fast.]"]),
    (WHAT, ["a cache miss", "a miss", "an expert miss"], [
        "[A miss means that a needed expert was not in the cache.|A miss happens when the router picks an expert that is not in memory.]",
        "[It must be read from disk, and the token has to wait.|Then the expert is read from disk, and you see the wait as a longer gap between tokens.]"]),
    (WHAT, ["a cache hit", "a hit", "an expert hit"], [
        "[A hit means that the needed expert was already in the cache.|A hit is a lookup that finds its expert in memory.]",
        "[The token can go on at once, without reading from disk.|Nothing has to be loaded, so the token does not wait.]"]),
    (WHAT, ["the expert cache", "the cache", "the expert store"], [
        "[The expert cache keeps some experts in memory, so that they need not be read from disk again.|The expert cache holds the experts that were used lately.]",
        "[When it is full, an old expert makes room for a new one.|When a new expert is needed and the cache is full, another one is dropped.]",
        "[You set its size with the cache slider.|Its size is counted in experts per layer.]"]),
    (WHAT, ["an eviction", "eviction", "evicting an expert"], [
        "[An eviction means that an expert is dropped from the cache to make room for another.|Eviction is what happens when the cache is full and a new expert comes in.]",
        "[Which one must go is decided by the cache policy.|The cache policy chooses the expert that has to go.]"]),
    (WHAT, ["the LRU cliff", "the cliff", "the cache cliff"], [
        "[The LRU cliff is the point where the cache is smaller than what one token needs.|Below the LRU cliff the cache cannot even hold the experts of one token.]",
        "[Each expert is then dropped just before it is needed again, and the hit rate falls to almost zero.|Then every expert is evicted before it is used again, so almost nothing hits.]",
        "[Keep at least twice the top-k experts per layer, here 8.|For this model a cache of 8 experts per layer is safely above it.]"]),
    (WHAT, ["a hot set", "the hot set", "a hot expert", "skewed routing"], [
        "[A hot set is a small group of experts that is chosen much more often than the others.|Routing is skewed when a few experts do most of the work. These are the hot set.]",
        "[If the hot set fits into the cache, the hit rate is high.|A cache that holds the hot set gives most of the speed.]"]),
    (WHAT, ["flat routing", "even routing", "uniform routing"], [
        "[Flat routing means that all experts are chosen about equally often.|With flat routing there are no favourite experts.]",
        "[Then a cache helps only as much as its share of all experts.|Then only a bigger cache helps, because there is no hot set to keep.]"]),
    (WHAT, ["an active parameter", "the number of active parameters", "active parameters"], [
        "[Active parameters are the weights that one token really uses.|The active parameters are the shared weights and the few chosen experts.]",
        "[This demo model has about 22 million parameters, and about 5 million of them are active for each token.|Here about 5 million of 22 million parameters are active.]"]),
    (WHAT, ["a layer", "a transformer layer", "a layer of the model"], [
        "[A layer is one step of the model: attention first, then the experts.|Each layer first looks back at the text with attention and then sends the token through its experts.]",
        "[This demo model has 6 layers.|The demo model has 6 of them, one after the other.]"]),
    (WHAT, ["a token", "a token in a language model"], [
        "[A token is a small piece of text, often a word or a part of a word.|Models do not read letters but tokens: words or pieces of words.]",
        "[The model writes its answer one token at a time.|Every token goes through all layers before the next one can be written.]"]),
    (WHAT, ["the tokenizer", "a tokenizer"], [
        "[The tokenizer cuts text into tokens and puts tokens back together into text.|The tokenizer turns text into numbers that the model can read, and back.]",
        "[This demo model knows 4096 different tokens.|Here the vocabulary has 4096 tokens.]"]),
    (WHAT, ["the context length", "the context", "the context window", "the context meter"], [
        "[The context is the text that the model can see at once.|The context length is the number of tokens that fit into one conversation.]",
        "[The context meter shows how much of it is used.|When it is full, start a new chat.]"]),
    (WHAT, ["attention", "self-attention", "the attention"], [
        "[Attention lets a token look back at the earlier tokens.|With attention each token gathers what it needs from the text before it.]",
        "[Its keys and values are kept in the KV cache.|It comes before the experts in each layer.]"]),
    (WHAT, ["the KV cache", "a KV cache", "the key-value cache"], [
        "[The KV cache keeps the keys and values of all earlier tokens.|The KV cache is the memory of the attention.]",
        "[Thanks to it, the text so far need not be computed again for each new token.|Without it the whole text would have to be read again for each new token.]",
        "[It is not the expert cache: it grows with the length of the chat.|It grows with every token, while the expert cache has a fixed size.|]"]),
    (WHAT, ["prefill", "the prefill", "prompt processing"], [
        "[Prefill is the first phase, in which the model reads your whole prompt at once.|During prefill the prompt is processed in large chunks.]",
        "[Many tokens share each loaded expert, so it is efficient.|It ends when the first token of the answer appears.]"]),
    (WHAT, ["decode", "the decode phase", "decoding"], [
        "[Decode is the second phase, in which the answer is written token by token.|During decode the model writes one token after another.]",
        "[Each token needs its own experts, so the cache matters most here.|Every step needs a few experts in every layer, and each miss makes it wait.]"]),
    (["What is the difference between {x}?", "How do {x} differ?", "Explain the difference between {x}.", "Can you compare {x}?",
      "What are {x}?", "Why do you speak of {x}?"], ["prefill and decode", "decode and prefill"], [
        "Prefill reads your whole prompt at once, and decode writes the answer one token at a time.",
        "[Prefill decides how long you wait for the first token, and decode decides how fast the rest comes.|Prefill is measured by TTFT and decode by ITL.]"]),
    (WHAT, ["temperature", "the temperature", "the sampling temperature"], [
        "[The temperature sets how freely the next token is chosen.|Temperature is a setting for the choice of the next token.]",
        "[At 0 the most likely token is always taken, and higher values give more variety.|With 0 the answer is always the same, and with a higher value it becomes more varied.]"]),
    (WHAT, ["greedy decoding", "greedy", "greedy sampling"], [
        "[Greedy decoding always takes the most likely token.|Greedy means that the token with the highest score is always chosen.]",
        "[The same prompt then gives the same answer every time.|So the answer is the same every time, at any cache size.]"]),
    (WHAT, ["top-p", "top-p sampling", "nucleus sampling"], [
        "[Top-p keeps only the most likely tokens whose chances add up to p.|With top-p the unlikely tokens are left out before one is drawn.]",
        "A lower value makes the answer safer, and a higher value makes it freer."]),
    (WHAT, ["quantisation", "quantization", "a quantised model"], [
        "[Quantisation stores the weights with fewer bits.|A quantised model keeps its weights as small numbers with a common scale.]",
        "[The files become smaller and faster to read, and the quality drops only a little.|Less has to be read from disk, so a miss costs less time.]"]),
    (WHAT, ["q8_0", "the q8_0 format", "q8"], [
        "[q8_0 stores each weight in 8 bits, with one scale for every 32 weights.|In q8_0 a block of 32 weights shares one scale, and each weight takes 8 bits.]",
        "[It is almost as good as the original and takes about half the space of f16.|This demo model is stored in q8_0.]"]),
    (WHAT, ["q4_0", "the q4_0 format", "q4"], [
        "[q4_0 stores each weight in 4 bits, with one scale for every 32 weights.|In q4_0 each weight takes only 4 bits.]",
        "[It takes half the space of q8_0, with a small loss of quality.|An expert is then only half as large to load as in q8_0.]"]),
    (WHAT, ["perplexity", "the perplexity"], [
        "[Perplexity says how surprised a model is by a text.|Perplexity measures how well a model predicts a text.]",
        "[Lower is better.|The lower it is, the better the model knows the text.]"]),
    (WHAT, ["a logit", "the logits", "logits"], [
        "[Logits are the raw scores that the model gives to every token in its vocabulary.|A logit is the raw score of one possible next token.]",
        "[They are turned into chances before a token is chosen.|The token with the highest one is the greedy choice.]"]),
    (WHAT, ["a dense model", "a dense network"], [
        "[A dense model uses all of its weights for every token.|In a dense model there are no experts: every weight works on every token.]",
        "[A Mixture of Experts uses only a few experts, so it can be larger for the same work.|So it cannot leave most of its weights on disk, as a Mixture of Experts can.]"]),
    (WHAT, ["load balance", "the load-balance loss", "load balancing"], [
        "[Load balance means that all experts get some of the work during training.|A small load-balance loss in training keeps any expert from being forgotten.]",
        "[If it is too strong, the routing becomes flat and the cache helps less.|With too little of it, some experts would never be used.]"]),
    (WHAT, ["inference", "running a model"], [
        "[Inference means using a trained model to write an answer.|Inference is the work of a model after training: it reads a prompt and writes an answer.]",
        "[Colibri Workbench shows where the time goes while this happens.|It has two phases, prefill and decode.]"]),
    # Metrics
    (WHAT, ["ITL", "the inter-token latency", "inter-token latency", "the ITL plot"], [
        "[ITL is the inter-token latency, the gap between one token and the next.|ITL means inter-token latency: the time between two tokens of an answer.]",
        "[The plot shows its P50 and P99.|A long gap usually means that an expert had to be read from disk.]"]),
    (WHAT, ["TTFT", "the time to first token", "time to first token"], [
        "[TTFT is the time to first token, from your request to the first token of the answer.|TTFT means time to first token.]",
        "[It contains the waiting in the queue and the prefill.|A long prompt or a cold cache makes it longer.]"]),
    (WHAT, ["P50", "the P50", "the median"], [
        "[P50 is the median: half of the values are below it and half are above.|Half of all values are smaller than the P50.]",
        "[It shows the usual case, while P99 shows the slow cases.|It tells you how long a token usually takes.]"]),
    (WHAT, ["P99", "the P99", "the 99th percentile"], [
        "[P99 is the value that 99 of 100 measurements stay below.|Only one gap in a hundred is longer than the P99.]",
        "[It shows the slow cases that an average hides.|It is drawn grey while there are fewer than 200 values.]"]),
    (WHAT, ["a stall", "stall", "the stall time", "an expert stall"], [
        "[A stall is time in which the computation waits for experts.|A stall means that the model has nothing to compute because an expert is still on its way.]",
        "[A larger cache or a better prefetch makes stalls shorter.|You can reduce it with a larger cache or with prefetch.]"]),
    (WHAT, ["tok/s", "tokens per second", "the speed in tok/s"], [
        "[tok/s is the number of tokens written in one second.|It is the speed of the answer: how many tokens come each second.]",
        "[It rises when fewer experts have to be read from disk.|The plot shows it together with the gaps between tokens.]"]),
    (WHAT, ["the expert load latency", "expert load latency", "the expert load plot", "the load latency"], [
        "[The expert load latency is the time from needing an expert until it is usable.|It shows how long it takes to bring an expert from disk into memory.]",
        "[The plot shows its P50 and P99.|A link limit or a slow disk makes it longer.]"]),
    (WHAT, ["SM utilisation", "the SM utilisation plot", "SM utilization", "the GPU plot"], [
        "[SM utilisation says how busy the processors of an NVIDIA graphics card are.|SM utilisation is the share of the graphics card's processors that are working.]",
        "[Without an NVIDIA driver it cannot be measured, so the plot says n/a.|It shows n/a when there is no NVIDIA driver. It never shows a made-up zero.]"]),
    (WHAT, ["the bandwidth", "bandwidth", "the disk bandwidth"], [
        "[Bandwidth is the number of bytes moved, divided by the time that the link was busy.|The bandwidth says how fast experts come from disk.]",
        "[If it is at its limit, only fewer misses can make the model faster.|When it is the limit, raise the cache size.]"]),
    # Knobs
    (DOES, ["the cache slider", "the expert cache size", "expert_cache_size", "the cache size", "the slider for the cache"], [
        "[The cache slider sets how many experts of each layer are kept in memory.|It sets the number of experts per layer that stay in memory.]",
        "[A larger cache gives a higher hit rate and fewer reads from disk, but it needs more memory.|More experts in memory mean fewer misses and faster tokens, but more memory is used.]",
        "[You can move it while an answer is being written, and the text does not change.|It works at once, even during an answer, and a marker appears in the plots.]"]),
    (RAISE, ["the cache size", "the expert cache size", "expert_cache_size", "the cache slider"], [
        "[A larger cache keeps more experts in memory.|More experts stay in memory.]",
        "[The hit rate rises, fewer experts are read from disk, and the tokens come faster.|So the hit rate goes up and the waits become shorter.]",
        "[It costs memory, and once all experts fit, more does not help.|The price is more memory.]"]),
    (LOWER, ["the cache size", "the expert cache size", "expert_cache_size", "the cache slider"], [
        "[A smaller cache keeps fewer experts in memory.|Fewer experts stay in memory.]",
        "[The hit rate falls, and more experts must be read from disk.|So there are more misses, and the tokens come more slowly.]",
        "[Do not go below 4 here, because one token needs 4 experts in each layer.|The text stays the same, only the speed changes.]"]),
    (DOES, ["the cache policy", "cache_policy", "the policy of the cache"], [
        "[The cache policy decides which expert is dropped when the cache is full.|It chooses the expert that must leave when a new one comes in.]",
        "[There are three: lru drops the one not used for the longest time, slru protects experts that were used twice, and lfru also counts how often they are used.|You can choose lru, slru or lfru and watch the hit rate.]"]),
    (WHAT, ["LRU", "the lru policy", "least recently used"], [
        "[LRU means least recently used.|LRU is the simplest cache policy.]",
        "[When the cache is full, the expert that was not used for the longest time is dropped.|It drops the expert whose last use is longest ago.]"]),
    (WHAT, ["SLRU", "the slru policy", "segmented LRU"], [
        "[SLRU is a segmented LRU with a trial part and a protected part.|SLRU splits the cache into two parts.]",
        "[An expert that is used a second time moves to the protected part, so a single use cannot push out a hot expert.|Only experts that are used again are protected.]"]),
    (WHAT, ["LFRU", "the lfru policy"], [
        "[LFRU looks at how often and how lately an expert was used.|LFRU mixes two ideas: how often an expert is used and how long ago that was.]",
        "[It keeps the hot experts even if they were not used just now.|It is good when a few experts are clearly hot.]"]),
    (DOES, ["prefetch", "prefetching", "the prefetch"], [
        "[Prefetch loads experts before they are needed.|Prefetch guesses which experts come next and reads them early.]",
        "[If the guess is right, the token does not have to wait.|A good guess hides the time of the read, and a bad one wastes the disk.]",
        "[It only uses the disk when no needed expert is waiting.|Reads that are needed now always go first.|]"]),
    (DOES, ["the prefetch source", "prefetch_source", "the source of the prefetch"], [
        "[The prefetch source says where the guess about the next experts comes from.|It chooses how the next experts are guessed.]",
        "[next_router asks the router of the next layer, previous_token takes the experts of the last token, router_table looks up the token, and off turns it off.|You can choose off, router_table, previous_token or next_router.]"]),
    (WHAT, ["next_router", "the next_router source", "next router prefetch"], [
        "[next_router asks the router of the next layer early, with the state of this layer.|With next_router the next layer's router makes its choice one layer too early.]",
        "[The guess is usually right, because the state changes little from layer to layer.|It is the default because its guess is often right.]"]),
    (WHAT, ["previous_token", "the previous_token source", "previous token prefetch"], [
        "[previous_token guesses that the next token uses the same experts as the last one.|With previous_token the experts of the last token are loaded again.]",
        "It is simple, and it helps when the text stays on one subject."]),
    (WHAT, ["router_table", "the router table", "the router_table source"], [
        "[The router table lists for each token which experts it usually needs.|A router table is a list from tokens to experts.]",
        "[It is quick to look up, but it does not see the context.|It only knows the token and not the sentence, so it is less exact.]"]),
    (DOES, ["the prefetch depth", "prefetch_depth", "the depth of the prefetch"], [
        "[The prefetch depth says how many layers ahead experts are loaded.|It sets how far ahead the prefetch looks, in layers.]",
        "[A greater depth gives each read more time, but the guess becomes worse.|1 is a good start, and 0 turns prefetch off.]"]),
    (RAISE, ["the prefetch depth", "prefetch_depth"], [
        "Experts are then loaded more layers ahead.",
        "[There is more time for each read, but the guesses become worse and more reads are wasted.|If the disk is slow it may help, but more of the guesses will be wrong.]"]),
    (DOES, ["the prefetch threads", "prefetch_threads", "the number of prefetch threads"], [
        "[The prefetch threads read experts from disk in the background.|It sets how many threads load experts in the background.]",
        "[More threads can have more reads in flight, but they take time from the compute threads.|One is usually enough, and 0 means that nothing is loaded early.]"]),
    (RAISE, ["the prefetch threads", "prefetch_threads"], [
        "[More prefetch threads can keep more reads in flight.|Then more experts can be read at the same time.]",
        "[But they share the cores with the compute threads, so too many make it slower.|On a slow disk this brings nothing, because the disk is already busy.]"]),
    (DOES, ["the link limit", "link_limit", "the link limit badge", "the speed limit"], [
        "[The link limit slows the reading of experts down, as if the disk were slower.|It sets an upper limit for reading experts, in MB per second.]",
        "[With it this small model shows the same effects as a very large one.|The demo starts with a limit, because otherwise this small model would be too fast to show anything.]",
        "[A badge is shown while it is on, and one click removes it.|Set it to 0 to remove it.]"]),
    (HOW, ["remove the link limit", "turn off the link limit", "lift the link limit"], [
        "[Click the badge, or set the link limit to 0.|Set link_limit to 0 in the knobs, or click its badge.]",
        "Then experts are read as fast as your disk can."]),
    (DOES, ["the compute threads", "compute_threads", "the number of compute threads"], [
        "[The compute threads do the arithmetic of the model.|It sets how many threads compute.]",
        "[Use as many as you have real cores.|More threads than cores make it slower.]",
        "[If the model waits for the disk, more of them do not help.|The text stays the same with any number of threads.]"]),
    (RAISE, ["the compute threads", "compute_threads"], [
        "[More compute threads make the arithmetic faster, up to the number of cores.|It helps as long as there are free cores.]",
        "[Beyond that they only disturb each other.|If the model is waiting for the disk, nothing changes.]"]),
    (DOES, ["the batch timeout", "batch_timeout_ms"], [
        "[The batch timeout says how long a request waits for others before they start together.|It sets how many milliseconds a request may wait for company.]",
        "[For a single chat it does not matter. With 0 every request starts at once.|A larger value helps many users together but makes each of them wait.]"]),
    (DOES, ["max_batch", "the batch size", "the maximum batch"], [
        "[It sets how many requests are computed together.|max_batch is the largest number of rows in one step.]",
        "[Together they share each expert that is loaded.|A larger batch is better for many users, and for a single chat it changes nothing.]"]),
    (DOES, ["the prefill chunk", "prefill_chunk"], [
        "[The prefill chunk is the number of prompt tokens that are processed at once.|It sets how many tokens of the prompt go through the model together.]",
        "[Large chunks are faster, and small chunks need less memory.|With larger chunks each loaded expert serves more tokens.]"]),
    (DOES, ["the NUMA mode", "numa_mode", "NUMA"], [
        "[It decides on which part of the memory the experts are placed on a machine with several processors.|The NUMA mode is for machines with more than one processor.]",
        "[On a normal computer leave it off.|Choose bind to stay on one node, or interleave to use all of them.]"]),
    (DOES, ["the io mode", "io_mode", "direct reading"], [
        "[It decides how experts are read from disk.|The io mode chooses the way of reading from disk.]",
        "[With direct the reads go around the page cache of the system, and with buffered they use it.|With direct the numbers are honest, because the system cannot keep a hidden copy.]"]),
    (DOES, ["the io depth", "io_depth"], [
        "[The io depth is the number of reads that may be in flight at the same time.|It sets how many reads are sent to the disk at once.]",
        "[A fast drive likes more of them.|A higher value helps fast drives and does nothing for slow ones.]"]),
    (DOES, ["the router mode", "router_mode"], [
        "[The router mode chooses how experts are picked.|It decides whether the real router or a table picks the experts.]",
        "[exact uses the model's own router. table is a quick lookup and only approximate.|Leave it at exact, unless you want to study the table.]"]),
    (DOES, ["gpu_expert_slots", "the GPU expert slots"], [
        "[It sets how many experts may stay in the memory of the graphics card.|The GPU expert slots hold experts in video memory.]",
        "[Without a graphics card it has no effect.|More slots mean fewer copies, but 2 GiB are left free.]"]),
    (WHAT, ["a knob", "the knobs", "the knobs dock"], [
        "[A knob is a setting that you can change while the model runs.|The knobs are the settings of the engine, such as cache size and prefetch depth.]",
        "[Each knob shows the value that you asked for and the value in effect.|Every change leaves a marker in the plots, so that you can see its effect.]"]),
    # The program
    (["What is {x}?", "What does {x} do?", "Tell me about {x}.", "What can {x} do?", "Explain {x}.", "What is {x} for?", "Who needs {x}?",
      "Why should I use {x}?", "Can you explain {x}?", "What kind of program is {x}?"],
     ["Colibri Workbench", "this program", "the workbench", "Colibri", "this app"], [
        "[Colibri Workbench runs large Mixture-of-Experts models from disk and shows where the time goes.|Colibri Workbench is a program that runs Mixture-of-Experts models on a normal computer.]",
        "[Only the experts in use are kept in memory.|It keeps the most useful experts in memory and reads the others from disk.]",
        "[You chat, watch the plots and turn the knobs.|You can turn the knobs while it answers and see the effect at once.]"]),
    (WHAT, ["the demo model", "this demo model", "the model I am talking to", "the bundled model"], [
        "[The demo model is a small Mixture of Experts that comes with Colibri Workbench.|I am the demo model of Colibri Workbench, a small Mixture of Experts.]",
        "It has 6 layers with 32 experts each and about 22 million parameters.",
        "[It can tell stories and answer questions about this program.|It was trained from scratch on stories and on questions about this program.]"]),
    (WHAT, ["a marker", "a marker in the plots", "the line in the plots", "a mark in the plot"], [
        "[A marker is a vertical line in the plots that shows when a knob was changed.|Every change of a knob leaves a marker, a thin line in all plots.]",
        "[So you can compare the time before and after it.|When enough tokens have passed, it also shows the measured effect.]"]),
    (WHAT, ["a session file", "the session file", "a session", "a recorded session"], [
        "[A session file holds everything that was measured: tokens, expert loads, knobs and marks.|A session file is a recording of your session.]",
        "[It is an SQLite database, so any SQL tool can open it.|You can open it later, compare it or export it.]"]),
    (HOW, ["export a session", "save my session", "share a session", "export the session file"], [
        "[Choose Export in the menu and then the session file.|Open the menu and choose Export session.]",
        "[It is an SQLite file that you can open with any SQL tool or in the workbench.|You can also export it as Perfetto, Chrome, CSV, JSON or HTML.]"]),
    (HOW, ["export a plot", "save a plot", "get a picture of a plot", "export the data of a plot"], [
        "[Use the menu of the plot and choose PNG, SVG or CSV.|Right-click the plot and choose Export.]",
        "[PNG and SVG give a picture, and CSV gives the numbers.|CSV contains the numbers behind the picture.]"]),
    (HOW, ["save my settings", "export the config", "load a config", "keep my knobs"], [
        "[Export the current config as JSON and load it again later.|The menu can save the config as a JSON file and load it back.]",
        "All knobs are stored in it."]),
    (HOW, ["open a model", "load a model", "load another model", "use my own model"], [
        "[Click Open model, or drop the folder of a model on the window.|Drop a model folder on the window, or choose Open model in the menu.]",
        "[Before loading you see how much memory it needs.|The memory estimate is shown before anything is loaded.]"]),
    (HOW, ["convert a model", "convert a checkpoint", "import a model from Hugging Face"], [
        "[Use the command colibri convert with the folder of the model.|Run colibri convert, give it the Hugging Face folder and a target folder.]",
        "[You can choose the weight type, for example q8_0 or q4_0.|It writes a container with one file of experts for each layer.]"]),
    (["Which {x}?", "What {x}?", "Tell me which {x}.", "Do you know which {x}?", "Please list which {x}.", "Can you tell me which {x}?"],
     ["models can I load", "models are supported", "models work", "formats are supported"], [
        "[You can load Mixture-of-Experts models such as OLMoE, Qwen3-MoE and Mixtral.|Mixture-of-Experts models work, for example OLMoE, Qwen3-MoE and Mixtral.]",
        "Convert them once with colibri convert."]),
    (HOW, ["make it faster", "make the model faster", "speed it up", "get more tokens per second", "improve the speed", "get a better hit rate", "reduce the stalls"], [
        "[First raise the cache size, because every miss waits for the disk.|The first thing to try is a larger cache.]",
        "[Then turn on prefetch with next_router and a depth of 1.|Then try prefetch with next_router.]",
        "[Here you can also remove the link limit.|In the demo, the link limit is what slows it down most, and one click lifts it.]"]),
    (WHY, ["is it so slow|it is so slow", "is the answer so slow|the answer is so slow", "are you so slow|you are so slow", "do the tokens come so slowly|the tokens come so slowly", "is the model slow|the model is slow"], [
        "[The demo runs with a link limit, so experts are read as if from a slow disk.|Most of the time is spent waiting for experts from the disk, because the link limit is on.]",
        "[Raise the cache size or lift the limit, and it becomes faster.|A larger cache or a click on the badge makes it faster.]"]),
    (WHY, ["is the first reply so slow|the first reply is so slow", "is the first answer slow|the first answer is slow", "does the first token take so long|the first token takes so long", "is the first reply slower than the second|the first reply is slower than the second"], [
        "[At the start the cache is empty, so almost every expert must be read from disk.|The cache is cold at first, and nearly every lookup is a miss.]",
        "[After some tokens the useful experts are in memory, and it becomes faster.|The second reply finds many experts already in memory.]"]),
    (WHY, ["does the hit rate fall|the hit rate falls", "does the hit rate drop|the hit rate drops", "did the hit rate go down|the hit rate went down", "is the hit rate falling|the hit rate is falling", "is the hit rate low|the hit rate is low"], [
        "[The hit rate falls when the model needs experts that are not in the cache.|It falls when new experts are needed or when the cache is made smaller.]",
        "[This happens when the subject changes, for example from a story to a question.|A new subject uses other experts, and they must be loaded first.]",
        "[A larger cache helps.|If it stays low, raise the cache size.]"]),
    (WHY, ["does the hit rate rise|the hit rate rises", "does the hit rate go up|the hit rate goes up", "is the hit rate rising|the hit rate is rising", "did the hit rate get better|the hit rate got better"], [
        "[The hit rate rises as the cache fills with the experts that this text needs.|After a while the useful experts are in memory.]",
        "[It also rises when you make the cache larger.|It stays high as long as the subject stays the same.]"]),
    (WHY, ["does the text not change with the cache size|the text does not change with the cache size", "is the answer the same with a smaller cache|the answer is the same with a smaller cache", "does the cache not change the answer|the cache does not change the answer", "is the text always the same|the text is always the same"], [
        "[The cache only decides where an expert is read from, not what is computed.|The same experts are used in any case, only their loading takes more or less time.]",
        "So the text is the same and only the speed changes."]),
    (WHY, ["does prefetch not help|prefetch does not help", "is prefetch useless|prefetch is useless", "does prefetch bring nothing|prefetch brings nothing", "is the prefetch wasted|the prefetch is wasted"], [
        "[Prefetch does not help when the disk is already busy with needed reads.|If the link is full, there is no free time for early reads.]",
        "[It also does not help when all experts are already in memory.|Wrong guesses are wasted too. The counters show how many were useful, late or wasted.]"]),
    (WHY, ["does the model wait for the disk|the model waits for the disk", "does it read from disk|it reads from disk", "is the disk so busy|the disk is so busy", "are experts read from disk|experts are read from disk"], [
        "[Not all experts fit into the cache, so the missing ones are read from disk.|Each miss means one read from disk.]",
        "A larger cache means fewer reads."]),
    (WHY, ["is there a spike in the plot|there is a spike in the plot", "is the P99 so high|the P99 is so high", "is there a peak in the ITL|there is a peak in the ITL", "does the latency jump|the latency jumps"], [
        "[A spike means that one token had to wait, usually for experts from disk.|Some tokens needed several experts that were not in memory.]",
        "[Look at the hit rate at the same moment.|Move the cursor there, and the other plots show the cause.]"]),
    (WHY, ["does it say n/a|it says n/a", "is the GPU plot empty|the GPU plot is empty", "does SM utilisation show n/a|SM utilisation shows n/a", "is there no GPU value|there is no GPU value"], [
        "[There is no NVIDIA driver on this machine, so it cannot be measured.|The value cannot be measured without an NVIDIA driver.]",
        "[n/a means not available. Unknown values are never shown as 0.|The workbench shows n/a instead of a false zero.]"]),
    (["How large {x}?", "How big {x}?", "What size {x}?", "Tell me how large {x}.", "Do you know how big {x}?"],
     ["should the cache be", "should I make the cache", "must the cache be", "does the cache need to be"], [
        "[As large as your memory allows, and at least twice the top-k.|Take what your memory allows, but at least 8 experts per layer here.]",
        "[The what-if curve shows how much each size would bring.|If the curve becomes flat, more does not help.]"]),
    (["How many {x}?", "Do you know how many {x}?", "Tell me how many {x}.", "Can you say how many {x}?"],
     ["experts do you have", "experts are there", "experts does the demo model have", "experts are in this model"], [
        "[There are 32 experts in each of the 6 layers, so 192 in all.|192 experts: 6 layers with 32 each.]",
        "Each token uses 4 in every layer."]),
    (["How many {x}?", "Do you know how many {x}?", "Tell me how many {x}.", "Can you say how many {x}?"],
     ["parameters do you have", "parameters are there", "parameters does the demo model have", "weights are in this model"], [
        "[About 22 million, of which about 5 million are active for each token.|The demo model has about 22 million parameters.]",
        "[That is very small for a language model.|Large models have a thousand times as many.]"]),
    (["What are {x}?", "Tell me about {x}.", "What do {x} show?", "Explain {x}.", "How do I read {x}?", "What can I see in {x}?"],
     ["the plots", "the four plots", "the live plots"], [
        "[The four plots show the expert hit rate, the expert load latency, the time between tokens, and SM utilisation.|There are four: hit rate, expert load latency, ITL with tok/s, and SM utilisation.]",
        "[They share one time axis and one cursor.|Move the cursor over one of them to see the values of all at that moment.]"]),
    (HOW, ["pause the plots", "zoom into a plot", "stop the scrolling of the plots", "look at an earlier moment"], [
        "[Click Pause, or turn the wheel over a plot to zoom.|Turn the wheel to zoom and drag to move.]",
        "[Follow brings you back to the newest values.|All plots move together. Press Follow to go on.]"]),
    (WHAT, ["the what-if curve", "the what-if plot", "the simulator", "the miss-ratio curve"], [
        "[The what-if curve shows what the hit rate would be at every other cache size.|The simulator takes the recorded routing and computes the hit rate for every cache size.]",
        "[It is computed from your own session, without running the model again.|So you see what a change would bring before you make it.]"]),
    (WHAT, ["a sweep", "the sweep", "the automatic tuning"], [
        "[A sweep tries many settings by itself and measures each of them.|In a sweep the workbench runs the same prompts with many settings.]",
        "[In the end it recommends the best one and says how sure it is.|It can also say that no setting is clearly better.]"]),
    (WHAT, ["a verdict", "the verdict", "the verdicts"], [
        "[A verdict says in words what limits the speed.|The verdict names the bottleneck: disk, memory or computation.]",
        "[It always shows the figures behind it.|It also says whether a larger cache or prefetch would help.]"]),
    (WHAT, ["the heat map", "the expert heat map", "the expert map"], [
        "[The heat map shows how often each expert was used in each layer.|In the heat map each cell is one expert of one layer.]",
        "[Bright cells are hot experts.|A few bright cells mean that there is a hot set.]"]),
    (WHAT, ["the timeline", "the timeline view"], [
        "[The timeline shows what happened in each moment: computing, loading and waiting.|The timeline shows every token, layer and expert load on one time axis.]",
        "It helps you to find the reason for a slow token."]),
    (WHAT, ["the memory estimate", "the memory bar", "the load page"], [
        "[The memory estimate says before loading how much memory the model will need.|It shows the memory for the shared weights, the expert cache and the KV cache.]",
        "[With a smaller cache it needs less.|If it is too much, choose a smaller cache.]"]),
    (HOW, ["stop an answer", "stop you", "cancel the answer", "stop the model"], [
        "[Press Escape or click Stop.|Click Stop, or press the Escape key.]",
        "[The text so far is kept.|It stops within one token.]"]),
    (HOW, ["regenerate an answer", "get another answer", "try the answer again"], [
        "[Click Regenerate under the answer.|Use Regenerate below the reply.]",
        "With a temperature above 0 the new answer will be different."]),
    (HOW, ["change the system prompt", "set a system prompt", "write a system prompt"], [
        "[Open the settings of the chat and write it into the field System prompt.|There is a field for the system prompt in the settings of the chat.]",
        "The model reads it before your first message."]),
    (HOW, ["use the dark theme", "switch to dark mode", "change the theme", "use the light theme"], [
        "[Click the theme button in the top bar.|There is a button for it in the top bar.]",
        "There is a light and a dark theme."]),
    (HOW, ["use it without a display", "run it in the terminal", "use the command line", "run it on a server"], [
        "[Use the command colibri chat with the folder of the model.|Run colibri chat in a terminal.]",
        "[All knobs are options of the command line too.|The commands generate, bench and sweep also work without a window.]"]),
    (["Do I need {x}?", "Does it need {x}?", "Is {x} needed?", "Can I run it without {x}?", "Must I have {x}?", "Does Colibri need {x}?"],
     ["a GPU", "a graphics card", "an NVIDIA card"], [
        "[No, it also runs on the processor alone.|No, a graphics card is not needed.]",
        "[With one, experts can stay in its memory and it becomes faster.|Without one, the plot for SM utilisation shows n/a.]"]),
    (["Do I need {x}?", "Does it need {x}?", "Is {x} needed?", "Can I run it without {x}?", "Must I have {x}?", "Does Colibri need {x}?"],
     ["the internet", "a network", "an account", "an internet connection"], [
        "[No, everything runs on your own computer.|No, the model and your chats stay on this computer.]",
        "[Nothing is sent anywhere.|You can use it without any connection.]"]),
    (["What is {x}?", "Under which licence is {x}?", "Is {x} free?", "Can I copy {x}?", "Who may use {x}?"],
     ["the licence of Colibri Workbench", "the licence of this program", "the program's licence"], [
        "[Colibri Workbench is free software under the GPL, version 3.|It is free software: the GPL, version 3 or later.]",
        "The engine library has the Apache licence."]),
    (WHY, ["is it called Colibri|it is called Colibri", "do you have this name|you have this name", "is the program named Colibri|the program is named Colibri"], [
        "[Colibri is another word for hummingbird, a very small and very fast bird.|A colibri is a hummingbird: tiny, but very quick.]",
        "[It only takes what it needs, from one flower after another.|The program is like that: it takes only the experts it needs.]"]),
    (WHAT, ["the number beside a message", "the figures under a reply", "the per-turn figures", "the line under an answer"], [
        "[They show the speed, the time to first token, the number of tokens and the hit rate of this reply.|Under each reply you see tok/s, TTFT, the tokens and the hit rate.]",
        "So you can compare one answer with the next."]),
    (WHAT, ["the effective value", "requested and effective", "the difference between requested and effective"], [
        "[The requested value is what you set, and the effective value is what really applies.|The effective value is what the engine really uses.]",
        "If they differ, the reason is shown beside it."]),
    (["What should I {x}?", "What can I {x}?", "Tell me what to {x}.", "What do I {x}?", "Give me an idea what to {x}."],
     ["try first", "do first", "do with this program", "try now", "start with"], [
        "[Ask for a long story, and move the cache slider while it is being told.|Let me tell a long story and move the cache slider from 8 to 24.]",
        "[Watch the hit rate and the time between the tokens.|You will see the hit rate rise and the gaps become shorter.]"]),
]


def frames():
    for number, (frame_list, names, parts) in enumerate(TOPICS):
        for frame in frame_list:
            # Every ninth or so phrasing of each topic stays out of the training text.
            yield number, frame, hash_of(f"{number}/{frame}") % 9 == 0


TRAIN, HELD_OUT = {}, {}
for _number, _frame, _out in frames():
    (HELD_OUT if _out else TRAIN).setdefault(_number, []).append(_frame)

PREFIX = ["", "", "", "", "", "", "Please tell me: ", "A question: ", "Hello. ", "Hi! ", "Thanks. ", "One more question: ", "And "]


def draw(rng, held_out=False):
    frames_of = HELD_OUT if held_out else TRAIN
    number = rng.choice(list(frames_of))
    _, names, parts = TOPICS[number]
    direct, _, indirect = rng.choice(names).partition("|")
    question = sentence_case(rng.choice(frames_of[number]).format(x=direct, y=indirect))
    prefix = rng.choice(PREFIX)
    if prefix.endswith((": ", "And ")):
        question = question[:1].lower() + question[1:] if not question.startswith("I ") else question
    answer = " ".join(p for p in (expand(part, rng) for part in parts) if p)
    return prefix + question, sentence_case(answer)
