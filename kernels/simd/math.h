// SPDX-License-Identifier: Apache-2.0
// Private: functions of whole vectors, for any vector class V of avx2/vec.h or avx512/vec.h.
#pragma once

namespace colibri {
namespace {

// e^x with a relative error below 2e-7. 0 for -infinity, infinity above 88.73, NaN for NaN.
template <typename V>
typename V::F expOf(typename V::F x) {
    using F = typename V::F;
    x = V::max(V::set1(-110.0f), V::min(V::set1(100.0f), x));
    const F n = V::round(V::mul(x, V::set1(1.44269504088896341f)));
    // ln 2 is split in two, and the first product is fused, so r has no rounding error.
    F r = V::negatedFma(n, V::set1(0.693147182464599609375f), x);
    r = V::negatedFma(n, V::set1(-1.904654299957768e-9f), r);
    F p = V::set1(1.0f / 5040.0f);  // Taylor series; |r| <= 0.347
    p = V::fma(p, r, V::set1(1.0f / 720.0f));
    p = V::fma(p, r, V::set1(1.0f / 120.0f));
    p = V::fma(p, r, V::set1(1.0f / 24.0f));
    p = V::fma(p, r, V::set1(1.0f / 6.0f));
    p = V::fma(p, r, V::set1(0.5f));
    p = V::fma(p, r, V::set1(1.0f));
    p = V::fma(p, r, V::set1(1.0f));
    return V::scaleByPower(p, n);
}

// silu(gate) * up.
template <typename V>
typename V::F gated(typename V::F gate, typename V::F up) {
    const typename V::F denominator = V::add(V::set1(1.0f), expOf<V>(V::negate(gate)));
    return V::mul(V::div(gate, denominator), up);
}

}  // namespace
}  // namespace colibri
