// SPDX-License-Identifier: Apache-2.0
// What a conversion will do, decided and checked before the first byte is written: for every
// container tensor and every expert matrix, the rows of the source it comes from.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/opened_source.h"
#include "engine/model/container.h"

namespace colibri {

struct DensePart {
    TensorInfo info;                     // placed; hash still 0
    RowView view;
};
struct ExpertsPart {
    ExpertLayer layout;                  // hashes still empty
    std::vector<std::array<RowView, 3>> experts;  // w1, w3, w2
};
struct Plan {
    ModelConfig config;                  // with tiedEmbeddings settled
    std::vector<DensePart> dense;        // in file order
    std::vector<ExpertsPart> layers;
    int64_t denseBytes = 0, expertBytes = 0;
    DType sourceType = DType::F32;       // predominant
    int64_t sourceTensors = 0;           // used
};

// Types of single matrices over the general one: by the last part of their name in the container
// ("embed", "head", "q", "down", ...), of experts "w1", "w3", "w2".
using TypeOverrides = std::map<std::string, DType>;

// Errors: BadInput with the list of tensors that are missing, of the wrong shape or unknown;
// Unsupported with those whose type is not read; InvalidArgument for a type without encoder. Views
// point into `source`.
Result<Plan> makePlan(const OpenedSource& source, std::optional<DType> dtype,
                      const TypeOverrides& overrides = {});

// Weight type of a matrix: the asked one, but embedding and head are kept at q8_0 when q4_0 or
// mxfp4 is asked (they are read once per token and carry the most error); the source's when none
// is asked.
DType targetType(const std::string& name, DType source, std::optional<DType> asked);

Status noEncoder(DType type);  // InvalidArgument: a type that is only read from GGUF

}  // namespace colibri
