// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void unsupported(BinaryOperator op, const Value& left, const Value& right) {
    if (left.is(Type::Undefined)) undefinedError(left);
    if (right.is(Type::Undefined)) undefinedError(right);
    if (op == BinaryOperator::Add &&
        (left.is(Type::String) || left.is(Type::List) || left.is(Type::Tuple))) {
        typeError("can only concatenate " + typeName(left) + " (not \"" + typeName(right) +
                  "\") to " + typeName(left));
    }
    typeError("unsupported operand type(s) for " + std::string(kSigns[size_t(op)]) + ": '" +
              typeName(left) + "' and '" + typeName(right) + "'");
}

[[noreturn]] void tooLarge() {
    throw RenderError("the integer is too large");
}

Integer integerPower(Integer base, Integer exponent) {
    Integer result = 1;
    while (exponent > 0) {
        if (exponent & 1) {
            if (__builtin_mul_overflow(result, base, &result)) tooLarge();
        }
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) tooLarge();
    }
    return result;
}

// Rounds toward negative infinity, so the remainder has the sign of the divisor.
Integer floorDivide(Integer a, Integer b) {
    if (b == -1) {
        if (__builtin_sub_overflow(Integer(0), a, &a)) tooLarge();
        return a;
    }
    const Integer quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

double floatModulo(double a, double b) {
    double rest = std::fmod(a, b);
    if (rest != 0) {
        if ((b < 0) != (rest < 0)) rest += b;
    } else {
        rest = std::copysign(0.0, b);
    }
    return rest;
}

double floatFloorDivide(double a, double b) {
    double quotient = (a - floatModulo(a, b)) / b;
    if (quotient == 0) return std::copysign(0.0, a / b);
    const double floored = std::floor(quotient);
    return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value integers(BinaryOperator op, Integer a, Integer b) {
    Integer out = 0;
    switch (op) {
        case BinaryOperator::Add:
            if (__builtin_add_overflow(a, b, &out)) tooLarge();
            break;
        case BinaryOperator::Subtract:
            if (__builtin_sub_overflow(a, b, &out)) tooLarge();
            break;
        case BinaryOperator::Multiply:
            if (__builtin_mul_overflow(a, b, &out)) tooLarge();
            break;
        case BinaryOperator::Divide:
            if (b == 0) throw RenderError("division by zero");
            return Value::real(double(a) / double(b));
        case BinaryOperator::FloorDivide:
            if (b == 0) throw RenderError("integer division or modulo by zero");
            out = floorDivide(a, b);
            break;
        case BinaryOperator::Modulo:
            if (b == 0) throw RenderError("integer modulo by zero");
            out = b == -1 ? 0 : a - floorDivide(a, b) * b;
            break;
        case BinaryOperator::Power:
            if (b < 0) {
                if (a == 0) throw RenderError("0.0 cannot be raised to a negative power");
                return Value::real(std::pow(double(a), double(b)));
            }
            out = integerPower(a, b);
            break;
    }
    return Value::integer(out);
}

Value floats(BinaryOperator op, double a, double b) {
    const bool divides = op == BinaryOperator::Divide || op == BinaryOperator::FloorDivide ||
                         op == BinaryOperator::Modulo;
    if (divides && b == 0) {
        throw RenderError(op == BinaryOperator::Divide        ? "float division by zero"
                          : op == BinaryOperator::FloorDivide ? "float floor division by zero"
                                                              : "float modulo");
    }
    switch (op) {
        case BinaryOperator::Add:
            return Value::real(a + b);
        case BinaryOperator::Subtract:
            return Value::real(a - b);
        case BinaryOperator::Multiply:
            return Value::real(a * b);
        case BinaryOperator::Divide:
            return Value::real(a / b);
        case BinaryOperator::FloorDivide:
            return Value::real(floatFloorDivide(a, b));
        case BinaryOperator::Modulo:
            return Value::real(floatModulo(a, b));
        case BinaryOperator::Power:
            break;
    }
    if (a == 0 && b < 0) throw RenderError("0.0 cannot be raised to a negative power");
    const double out = std::pow(a, b);
    if (std::isnan(out) && !std::isnan(a) && !std::isnan(b))
        throw RenderError("complex numbers are not supported");
    if (std::isinf(out) && !std::isinf(a) && !std::isinf(b))
        throw RenderError("(34, 'Numerical result out of range')");
    return Value::real(out);
}

Value concatenated(Runtime& runtime, const Value& left, const Value& right) {
    if (left.is(Type::String)) {
        const bool safe = left.as<StringObject>().safe || right.as<StringObject>().safe;
        TracedText out;
        runtime.chargeBytes(left.text().size() + right.text().size());
        for (const Value* value : {&left, &right}) {
            const TracedText& part = value->as<StringObject>();
            out.append(safe && !value->as<StringObject>().safe ? escapeHtml(part) : part);
        }
        return Value::string(std::move(out), safe);
    }
    runtime.chargeBytes((left.items().size() + right.items().size()) * 16);
    std::vector<Value> items = left.items();
    items.insert(items.end(), right.items().begin(), right.items().end());
    return left.is(Type::List) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value repeated(Runtime& runtime, const Value& what, Integer times) {
    const size_t size = what.is(Type::String) ? what.text().size() : what.items().size() * 16;
    if (times < 0 || size == 0) times = 0;
    if (times > (1 << 28)) times = 1 << 28;  // rejected below
    runtime.chargeBytes(size * size_t(times));
    if (what.is(Type::String)) {
        TracedText out;
        out.text.reserve(size * size_t(times));
        runtime.charge(int64_t(what.as<StringObject>().data.size()) * int64_t(times));
        for (Integer i = 0; i < times; ++i) out.append(what.as<StringObject>());
        return Value::string(std::move(out), what.as<StringObject>().safe);
    }
    std::vector<Value> items;
    for (Integer i = 0; i < times; ++i)
        items.insert(items.end(), what.items().begin(), what.items().end());
    return what.is(Type::List) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

bool isSequence(const Value& value) {
    return value.is(Type::String) || value.is(Type::List) || value.is(Type::Tuple);
}

}  // namespace

Value binaryOperator(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right) {
    if (left.isInteger() && right.isInteger())
        return integers(op, left.asInteger(), right.asInteger());
    if (left.isNumber() && right.isNumber()) return floats(op, left.asDouble(), right.asDouble());
    if (op == BinaryOperator::Add && left.type() == right.type() && isSequence(left)) {
        return concatenated(runtime, left, right);
    }
    if (op == BinaryOperator::Multiply) {
        if (isSequence(left) && right.isInteger())
            return repeated(runtime, left, right.asInteger());
        if (isSequence(right) && left.isInteger())
            return repeated(runtime, right, left.asInteger());
    }
    if (op == BinaryOperator::Modulo && left.is(Type::String)) {
        const bool safe = left.as<StringObject>().safe;
        return runtime.text(percentFormat(runtime, left.as<StringObject>(), right, safe), safe);
    }
    unsupported(op, left, right);
}

Value negative(const Value& value) {
    if (value.is(Type::Float)) return Value::real(-value.asDouble());
    if (value.isInteger()) {
        Integer out = 0;
        if (__builtin_sub_overflow(Integer(0), value.asInteger(), &out)) tooLarge();
        return Value::integer(out);
    }
    if (value.is(Type::Undefined)) undefinedError(value);
    typeError("bad operand type for unary -: '" + typeName(value) + "'");
}

Value positive(const Value& value) {
    if (value.is(Type::Float)) return value;
    if (value.isInteger()) return Value::integer(value.asInteger());
    if (value.is(Type::Undefined)) undefinedError(value);
    typeError("bad operand type for unary +: '" + typeName(value) + "'");
}

namespace {

// Python's slice.indices(): bounds clamped to 0 .. length.
struct Indices {
    Integer start, stop, step;
};

Integer bound(const Value& value, Integer fallback, Integer low, Integer high, Integer length) {
    if (value.is(Type::None)) return fallback;
    if (!value.isInteger())
        typeError("slice indices must be integers or None or have an __index__ method");
    Integer at = value.asInteger();
    if (at < 0) at += length;
    return std::clamp(at, low, high);
}

Indices indicesOf(const Value& start, const Value& stop, const Value& step, Integer length) {
    Integer by = 1;
    if (!step.is(Type::None)) {
        if (!step.isInteger())
            typeError("slice indices must be integers or None or have an __index__ method");
        by = std::clamp(step.asInteger(), -(Integer(1) << 62), Integer(1) << 62);
    }
    if (by == 0) throw RenderError("slice step cannot be zero");
    const Integer low = by < 0 ? -1 : 0, high = by < 0 ? length - 1 : length;
    return {bound(start, by < 0 ? high : 0, low, high, length),
            bound(stop, by < 0 ? -1 : length, low, high, length), by};
}

template <typename Take>
void walk(const Indices& at, Take take) {
    for (Integer i = at.start; at.step > 0 ? i < at.stop : i > at.stop; i += at.step)
        take(size_t(i));
}

}  // namespace

Value sliceOf(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
              const Value& step) {
    if (object.is(Type::Undefined)) undefinedError(object);
    if (object.is(Type::String)) {
        const StringObject& string = object.as<StringObject>();
        runtime.chargeBytes(string.text.size());
        const Indices at = indicesOf(start, stop, step, Integer(codePointCount(string)));
        if (at.step == 1) {
            const size_t from = byteOffset(string, size_t(at.start));
            const size_t to = byteOffset(string, size_t(std::max(at.start, at.stop)));
            return Value::string(string.slice(from, to), string.safe);
        }
        const std::u32string codes = toCodePoints(string.text);
        std::u32string out;
        walk(at, [&](size_t i) { out += codes[i]; });
        return Value::string(TracedText(toUtf8(out), string.hasData()), string.safe);
    }
    if (object.is(Type::List) || object.is(Type::Tuple)) {
        const auto& items = object.items();
        runtime.chargeBytes(items.size());
        std::vector<Value> out;
        walk(indicesOf(start, stop, step, Integer(items.size())),
             [&](size_t i) { out.push_back(items[i]); });
        return object.is(Type::List) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
    }
    if (object.is(Type::Range)) {
        const RangeObject& range = object.as<RangeObject>();
        const Indices at = indicesOf(start, stop, step, range.count());
        return Value::range({range.start + at.start * range.step,
                             range.start + at.stop * range.step, range.step * at.step});
    }
    if (object.is(Type::Dict)) typeError("unhashable type: 'slice'");
    typeError("'" + typeName(object) + "' object is not subscriptable");
}

}  // namespace colibri::jinja
