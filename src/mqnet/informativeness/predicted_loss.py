"""Loss predicted by the model itself."""

from torch import Tensor

from mqnet.numerics.softmax import per_row
from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("predicted_loss", needs={"predicted_loss"})
def predicted_loss(view: RoundView) -> Tensor:
    """The loss the target model's own branch expects for each item [N] (learning loss, Yoo & Kweon 2019)."""
    return per_row(view.column("predicted_loss"), lambda loss: loss)
