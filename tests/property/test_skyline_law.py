"""The skyline law in floating point (METHOD 2), over forms, dimensions, inputs and arbitrary updates."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mqnet.meta.fit import FitOptions, QuerySet, fit
from mqnet.meta.skyline import FORMS, Form, SkylineNet, start_net

CLIP = 4.0
EXTREMES = [0.0, -0.0, 1e-45, -1e-45, 1.17549435e-38, 3.4028234e38, -3.4028234e38, 1e20, -1e20, 50.0, -50.0, 1.0]
raw_values = st.one_of(st.floats(-5, 5, width=32), st.sampled_from(EXTREMES))
monotone = st.sampled_from([FORMS["default"], FORMS["paper"], FORMS["reference"]])


def violations(net: SkylineNet, low: torch.Tensor, high: torch.Tensor) -> str:
    """What the law says is wrong with a net on rows with high >= low, or nothing."""
    phi_low, phi_high = net.score(low), net.score(high)
    if not bool(phi_low.isfinite().all() and phi_high.isfinite().all()):
        return "not finite"
    if bool((phi_high < phi_low - 1e-5 * (1 + phi_low.abs())).any()):
        return "not monotone"
    batched = net.score(torch.cat([high, low, low[:1]]))
    if not torch.equal(batched, torch.cat([phi_high, phi_low, phi_low[:1]])):
        return "depends on the batch"
    larger = (high - low >= 0.01).all(dim=1)
    if net.form.straight and bool((phi_high <= phi_low)[larger].any()):
        return "not strictly larger"
    return ""


@st.composite
def nets(draw: st.DrawFn) -> SkylineNet:
    form, d = draw(monotone), draw(st.integers(1, 5))
    net = start_net(d, form, torch.Generator().manual_seed(draw(st.integers(0, 2**31))))
    changed = []
    for parameter in net.parameters():
        # arbitrary updates: any parameter anywhere may become anything a float32 can be
        flat = parameter.flatten().clone()
        for _ in range(draw(st.integers(0, 4))):
            flat[draw(st.integers(0, len(flat) - 1))] = draw(raw_values)
        if draw(st.booleans()) and draw(st.booleans()):
            flat[:] = draw(raw_values)
        changed.append(flat.reshape(parameter.shape))
    return net.with_parameters(tuple(changed))


@st.composite
def ordered_rows(draw: st.DrawFn, d: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = draw(st.integers(1, 70))
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    low = (torch.rand(n, d, generator=g) * 2 - 1) * CLIP
    step = torch.rand(n, d, generator=g) * draw(st.sampled_from([0.0, 1e-6, 0.02, 1.0, 8.0]))
    high = torch.maximum((low + step).clamp(-CLIP, CLIP), low)
    extra = torch.tensor([draw(st.lists(st.sampled_from([-CLIP, 0.0, CLIP]), min_size=d, max_size=d))])
    return torch.cat([low, extra]), torch.cat([high, torch.full((1, d), CLIP)])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_update_breaks_the_law(data):
    net = data.draw(nets())
    low, high = data.draw(ordered_rows(net.n_inputs))
    if net.form is not FORMS["default"]:  # their inputs are exp(z), never negative
        low, high = low.exp(), high.exp()
    assert violations(net, low, high) == ""


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(1, 4),
    st.sampled_from(["adam", "sgd"]),
    st.sampled_from(["logistic", "hinge", "printed"]),
)
def test_training_keeps_the_law(seed, d, optimiser, loss):
    g = torch.Generator().manual_seed(seed)
    z, target = torch.randn(40, d, generator=g).clamp(-CLIP, CLIP), torch.relu(torch.randn(40, generator=g))
    options = FitOptions(loss=loss, optimiser=optimiser, lr=0.5, n_epochs=20)
    net = fit(start_net(d, FORMS["default"], g), [QuerySet(z, target)], options, g)
    low = torch.randn(200, d, generator=g).clamp(-CLIP, CLIP)
    assert violations(net, low, (low + torch.rand(200, d, generator=g)).clamp(max=CLIP)) == ""


def test_a_planted_violation_is_found():
    net = start_net(2, Form(weights="free"), torch.Generator().manual_seed(0))
    w, b, v, c = net.parameters()
    planted = net.with_parameters((w, b, -v, c))
    low = torch.full((1, 2), -1.0)
    assert violations(planted, low, low + 2.0) == "not monotone"


def test_a_collapsed_net_is_found():
    # one weight of the straight term taken away and every unit saturated: a constant, monotone and useless
    net = start_net(2, FORMS["default"], torch.Generator().manual_seed(0))
    w, _, v, c = net.parameters()
    constant = net.with_parameters((w, torch.full((64,), 1e9, dtype=torch.float64), v, c))
    low = torch.full((1, 2), -1.0)
    assert violations(constant, low, low + 0.5) == ""  # the straight term saves it

    class WithoutStraightTerm(SkylineNet):
        def _score(self, columns, w, b1, v, b2):  # the planted fault: the form promises a straight term, none is added
            return SkylineNet(FORMS["reference"], self.raw_w, self.b1, self.raw_v, self.b2)._score(
                columns, w, b1, v, b2
            )

    assert (
        violations(WithoutStraightTerm(constant.form, *constant.parameters()), low, low + 0.5) == "not strictly larger"
    )


@pytest.mark.parametrize("name", sorted(FORMS))
def test_score_is_forward(name):
    g = torch.Generator().manual_seed(1)
    for d in (1, 2, 5):
        net = start_net(d, FORMS[name], g)
        z = torch.rand(1000, d, generator=g).double() * 4
        assert torch.allclose(net.score(z), net.forward(z), rtol=1e-12, atol=1e-12)
        assert torch.equal(SkylineNet.restored(net.form, net.state()).score(z), net.score(z))
