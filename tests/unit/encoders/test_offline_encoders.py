"""The encoders whose weights lie in packages: real features, without internet, that tell things apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mqnet.encoders.base import default_encoder, make_encoder

pytestmark = pytest.mark.encoders


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the packages, at import
def test_texts_that_mean_the_same_are_near() -> None:
    assert default_encoder("text")[0] == "minilm"
    vectors = make_encoder("minilm", {}).encode(
        ["I lost my credit card.", "My bank card has gone missing.", "The cat sleeps on the sofa."]
    )
    assert vectors.shape == (3, 384)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3), atol=1e-4, rtol=0)
    near, far = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    assert near > far + 0.3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_images_of_one_kind_are_nearer_than_of_two() -> None:
    assert default_encoder("image")[0] == "efficientnet-lite0"
    encoder = make_encoder("efficientnet-lite0", {"size": 64})
    ramp = torch.linspace(0, 255, 64)
    smooth = torch.stack([ramp.view(1, 1, 64).expand(3, 64, 64), ramp.view(1, 64, 1).expand(3, 64, 64)])
    noise = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, 64, 64)).astype(np.uint8))
    images = torch.cat([smooth.to(torch.uint8), noise])
    vectors = encoder.encode(images)
    assert vectors.shape == (4, 1280)
    unit = torch.nn.functional.normalize(vectors, dim=1)
    cosines = unit @ unit.T
    assert float(cosines[2, 3]) > float(cosines[0, 2]) + 0.2
    assert float(cosines[0, 1]) > float(cosines[0, 2])
    torch.testing.assert_close(encoder.encode(images[2:]), vectors[2:], atol=0.02, rtol=0.02)  # a row stands by itself
