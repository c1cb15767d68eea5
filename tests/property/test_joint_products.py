"""For random shapes, sparsities, scales and holders the revealed words are the integer product, exactly."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.joint import Run, agreement_of
from vfgnn.model.optimisers import SharedMomentum
from vfgnn.mpc.fixed_point import FixedPoint, feature_bits, update_bits, weight_bits
from vfgnn.randomness import insecure_seed
from vfgnn.settings import Settings
from vfgnn.split.joint_layer import H0, WEIGHT_BOUND, draw_weight_share


class IntegerTwin:
    """The same rounding in plain integer arithmetic, everything in one place."""

    def __init__(self, agreement, features, seed=0):
        self.agreement, self.bits, self.x, self.w = agreement, {}, {}, {}
        shares = [draw_weight_share(agreement, insecure_seed(100 * seed + i)) for i in range(len(agreement.holders))]
        for holder, x in zip(agreement.holders, features, strict=True):
            if not holder.features:
                continue
            bits = self.bits[holder.name] = feature_bits(integer=holder.integer)
            self.x[holder.name] = FixedPoint(bits, 1024.0).encode(x, "x")
            weight = FixedPoint(weight_bits(bits), WEIGHT_BOUND)
            self.w[holder.name] = sum(weight.encode(share[holder.name], "w") for share in shares)
        self.first = H0.decode(sum(self.x[k] @ self.w[k] for k in self.x))

    def h0(self, qs, a):
        moved = 0
        for k, x in self.x.items():
            encoding = FixedPoint(update_bits(self.bits[k]), self.agreement.settings.update_bound)
            q = sum(encoding.encode(part, "q") for part in qs)
            moved = moved + x @ (x.t() @ q)
        return H0.decode(moved).neg_().add_(self.first, alpha=a)


@st.composite
def cases(draw):
    holders = draw(st.integers(2, 5))
    nodes = draw(st.integers(1, 12))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    features, edges = [], []
    for _ in range(holders):
        columns = draw(st.integers(0, 6))
        x = torch.rand(nodes, columns, generator=generator) < draw(st.sampled_from([0.05, 0.5, 1.0]))
        x = x * (torch.rand(nodes, columns, generator=generator) - 0.5) * draw(st.sampled_from([1.0, 8.0, 100.0]))
        features.append(x.round() if draw(st.booleans()) else x)
        edges.append(draw(st.booleans()))
    if not any(edges):
        edges[0] = True
    if not any(x.shape[1] for x in features):
        features[-1] = torch.ones(nodes, 2)
    return features, edges, draw(st.integers(1, 5)), generator


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_reveal_is_the_integer_product(case):
    features, edges, dim, generator = case
    agreement = agreement_of(features, edges, dim=dim)
    learners = [f"h{i}" for i, has in enumerate(edges) if has]
    updates = {name: torch.randn(features[0].shape[0], dim, generator=generator).double() * 1e-3 for name in learners}
    run = Run(agreement, features).go(1, lambda name, layer, _: layer.momentum.q.copy_(updates[name]))
    twin = IntegerTwin(agreement, features)
    expected = twin.h0(list(updates.values()), 1.0)
    for name in agreement.holder_names:
        if name in learners:
            assert torch.equal(run.h0[name][0], twin.first)
            assert torch.equal(run.h0[name][1], expected)
        else:
            assert run.h0[name] == [None, None]
    check_against_floats(agreement, features, twin)


def check_against_floats(agreement, features, twin):
    """H_0 decodes within the derived bound of the float product.

    Per entry X_k and W_k are rounded: |x w - x' w'| <= |x'| 2^-(51 - f) I + |w| 2^-(f + 1), over columns; float64
    adds less than 1e-9 of the sum of absolute products.
    """
    total, bound = 0, 0
    count = len(agreement.holders)
    for i, holder in enumerate(agreement.holders):
        if not holder.features:
            continue
        f = twin.bits[holder.name]
        x = features[i].double()
        w = sum(draw_weight_share(agreement, insecure_seed(j))[holder.name] for j in range(count))
        total = total + x @ w
        rounded_x = 0.0 if f == 0 else 2.0 ** -(f + 1)
        bound = bound + (x.abs() + rounded_x).sum(1, keepdim=True) * count * 2.0 ** -(51 - f)
        bound = bound + rounded_x * w.abs().sum(0) + 1e-9 * (x.abs() @ w.abs())
    assert bool(((twin.first - total).abs() <= bound + 1e-15).all())


def test_50_steps_equal_the_integer_twin_and_follow_float64():
    """Momentum, Nesterov and weight decay, integer and real features side by side, 3 holders.

    Against float64 training of W on the rounded features: 1e-6 of max |h0|. What differs is the rounding of Q_i, with
    26 fraction bits (real features have 12): uniform within 2^-27, 2^-27 / sqrt(3) in the mean square. Three holders
    and a row of X X^T of length ~ 20 (16 columns of size ~ 1, 30 nodes) make 20 * 2^-27 = 1.5e-7, four times that at
    most in the 12,000 values here, of an h0 of size 1-3.
    """
    draw = torch.Generator().manual_seed(4)
    features = [
        (torch.rand(30, 8, generator=draw) < 0.3).float(),
        torch.randn(30, 5, generator=draw),
        torch.rand(30, 3, generator=draw) * 2 - 1,
    ]
    target = {name: torch.randn(30, 4, generator=draw).double() for name in ("h0", "h1", "h2")}
    for nesterov in (False, True):
        chosen = {
            "joint_learning_rate": 0.0003,
            "joint_momentum": 0.9,
            "joint_weight_decay": 0.01,
            "joint_nesterov": nesterov,
        }
        agreement = agreement_of(features, [True, True, True], **chosen)
        run = Run(agreement, features).go(50, lambda name, layer, h0: layer.momentum.step((h0 - target[name]).float()))
        # The integer twin, with every holder's momentum in one place.
        twin = IntegerTwin(agreement, features)
        parts = {name: SharedMomentum(torch.zeros(30, 4).double(), Settings(**chosen)) for name in target}
        h0 = twin.first
        # float64 training of the whole W on the rounded features.
        x = torch.cat([twin.x[k].double() * 2.0 ** -twin.bits[k] for k in twin.x], dim=1)
        blocks = [twin.w[k].double() * 2.0 ** -weight_bits(twin.bits[k]) for k in twin.x]
        w = torch.nn.Parameter(torch.cat(blocks))
        sgd = torch.optim.SGD([w], lr=0.0003, momentum=0.9, weight_decay=0.01, nesterov=nesterov)
        for step in range(1, 51):
            whole = (x @ w).detach()
            w.grad = x.t() @ sum((whole - target[name]).float().double() for name in target)
            sgd.step()
            for name, part in parts.items():
                part.step((h0 - target[name]).float())
            h0 = twin.h0([part.q for part in parts.values()], parts["h0"].a)
            for name in target:
                assert torch.equal(run.h0[name][step], h0)
            reached = (x @ w).detach()
            assert float((h0 - reached).abs().max()) < 1e-6 * float(reached.abs().max())
