// SPDX-License-Identifier: Apache-2.0
// The plan of a conversion, made and checked before the first byte is written: for every container
// tensor and every expert matrix, the rows of the source it comes from.
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
    TensorInfo info;  // with offset; hash still 0
    RowView view;
};
struct ExpertsPart {
    ExpertLayer layout;                           // hashes still empty
    std::vector<std::array<RowView, 3>> experts;  // w1, w3, w2
};
struct Plan {
    ModelConfig config;            // with tiedEmbeddings resolved
    std::vector<DensePart> dense;  // in file order
    std::vector<ExpertsPart> layers;
    int64_t denseBytes = 0, expertBytes = 0;
    DType sourceType = DType::F32;  // predominant
    int64_t sourceTensors = 0;      // used
};

// Types of single matrices, which override the general one: by the last part of their name in the
// container ("embed", "head", "q", "down", ...), for experts "w1", "w3", "w2".
using TypeOverrides = std::map<std::string, DType>;

// Errors: BadInput with the list of tensors that are missing, of the wrong shape or unknown;
// Unsupported with those of an unsupported type; InvalidArgument for a type without encoder. Views
// point into `source`.
Result<Plan> makePlan(const OpenedSource& source, std::optional<DType> dtype,
                      const TypeOverrides& overrides = {});

// Weight type of a matrix: the requested one, but q8_0 for embedding and head if q4_0 or mxfp4 is
// requested (they are read once per token and contribute most of the error); the source's if none
// is requested.
DType targetType(const std::string& name, DType source, std::optional<DType> requested);

Status noEncoder(DType type);  // InvalidArgument: a type that can only be read from GGUF

}  // namespace colibri
