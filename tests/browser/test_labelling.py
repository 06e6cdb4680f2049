"""The focus view: one item at a time, by keyboard, mouse or thumb; and nothing is lost when the network is."""

from __future__ import annotations

import pytest
from driving import NONE, SKIP, known, pictures, press, ready, saved, saving, shown
from fake_api import FakeCampaign
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

TEXTS = {
    "short": "Hi.",
    "long": "I ordered a card three weeks ago. " * 200,
    "word": "Donaudampfschifffahrtsgesellschaft" * 12,
    "lines": "one\ntwo\n\n\nthree",
    "arabic": "متى تصل بطاقتي الجديدة؟",
    "last": "And now?",
}
INTENTS = [f"{kind}_{what}" for kind in ("card", "cash", "top_up") for what in ("arrival", "lost", "fee", "limit")]


def test_a_campaign_on_images_by_keyboard_alone(served, visit) -> None:
    campaign = FakeCampaign(pictures(9), ["cat", "dog"], round_budget=3, total_budget=9, trains_at_once=True)
    page = visit(served(campaign))
    keys = dict(zip(campaign.items, "12xs2x121", strict=True))
    meaning = {"1": known("cat"), "2": known("dog"), "x": NONE, "s": SKIP}
    for item, key in keys.items():
        expect(page.locator(".caption")).to_have_text(item)
        assert press(page, key) == item
    expect(page.get_by_role("heading", name="The budget is spent")).to_be_visible()
    saved(page)
    assert campaign.live() == {item: meaning[key] for item, key in keys.items()}
    assert len(campaign.votes) == len(keys)
    assert all(vote.seconds is not None and 0 < vote.seconds < 30 for vote in campaign.votes)


def test_the_next_ten_images_are_there_before_they_are_needed(served, visit) -> None:
    campaign = FakeCampaign(pictures(20), ["cat"], round_budget=20, total_budget=20)
    page = visit(served(campaign))
    press(page, "1")
    saved(page)
    page.wait_for_load_state("networkidle")
    fetched = [path for _, path in campaign.requests if path.endswith("/image") and "size" not in path]
    assert {f"/api/items/photo_{i:03d}.png/image" for i in range(11)} <= set(fetched)


def test_above_ten_classes_typing_finds_one_and_never_answers_by_accident(served, visit) -> None:
    campaign = FakeCampaign({f"t{i}": f"text {i}" for i in range(8)}, INTENTS, round_budget=8, total_budget=8)
    page = visit(served(campaign))
    ready(page)
    page.keyboard.type("sx")  # letters only type: they are commands with Shift
    expect(page.get_by_text('No class contains "sx".')).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.type("fee")
    expect(page.locator(".found .choice")).to_have_text(["1card_feeEnter", "2cash_fee", "3top_up_fee"])
    press(page, "Enter")
    page.keyboard.type("fee")
    press(page, "2")
    press(page, "Shift+x")
    press(page, "Shift+s")
    press(page, "3")
    saved(page)
    given = [known("card_fee"), known("cash_fee"), NONE, SKIP, known("card_fee")]
    assert list(campaign.live().values()) == given
    page.keyboard.press("Shift+u")
    expect(page.locator(".caption")).to_have_text("t4")
    assert list(campaign.live().values()) == given[:4]


def test_buttons_never_move(served, visit) -> None:
    campaign = FakeCampaign(dict(TEXTS), ["cat", "a class with a rather long name that needs two lines"], 2, 6)
    page = visit(served(campaign))
    buttons = page.locator(".panel button")

    def places() -> list[object]:
        return [button.bounding_box() for button in buttons.all()]

    ready(page)
    before = places()
    assert len(before) == 2 + 2 + 3
    for _ in range(2):
        press(page, "1")
        assert places() == before
    expect(page.locator(".banner").first).to_contain_text("The next round is being prepared")
    assert places() == before
    press(page, "x")  # an early answer
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".correct")).to_contain_text("You answered none of these")
    assert places() == before


def test_early_answers_are_kept_and_the_page_says_so(served, visit) -> None:
    campaign = FakeCampaign(pictures(6), ["cat"], round_budget=2, total_budget=6)
    page = visit(served(campaign))
    press(page, "1")
    press(page, "1")
    expect(page.locator(".banner").first).to_contain_text("early answers are kept")
    assert press(page, "x") == "photo_002.png"
    saved(page)
    assert campaign.votes[-1].round is None
    campaign.trained()
    expect(page.locator(".banner").first).to_be_hidden()
    assert campaign.live()["photo_002.png"] == NONE
    assert campaign.votes[-1].round == 1
    assert press(page, "1") == "photo_003.png"


def test_without_early_answers_it_waits_and_goes_on_by_itself(served, visit) -> None:
    campaign = FakeCampaign(pictures(4), ["cat"], round_budget=2, total_budget=4, early_answers=False)
    page = visit(served(campaign))
    press(page, "1")
    press(page, "1")
    expect(page.get_by_role("heading", name="The next round is being prepared")).to_be_visible()
    page.keyboard.press("1")  # nothing to answer
    campaign.trained()
    assert press(page, "x") == "photo_002.png"
    saved(page)
    assert len(campaign.votes) == 3


def test_undo_goes_back_across_rounds(served, visit) -> None:
    campaign = FakeCampaign(pictures(6), ["cat", "dog"], round_budget=2, total_budget=6, trains_at_once=True)
    page = visit(served(campaign))
    for key in "111":
        press(page, key)
    saved(page)
    page.keyboard.press("u")  # of the open round: taken back
    expect(page.locator(".caption")).to_have_text("photo_002.png")
    assert "photo_002.png" not in campaign.live()
    page.keyboard.press("Backspace")  # of a closed round: it stands until replaced
    expect(page.locator(".caption")).to_have_text("photo_001.png")
    expect(page.locator(".correct")).to_contain_text("You answered cat")
    assert campaign.live()["photo_001.png"] == known("cat")
    assert press(page, "2") == "photo_001.png"
    expect(page.locator(".caption")).to_have_text("photo_002.png")
    saved(page)
    assert campaign.live() == {"photo_000.png": known("cat"), "photo_001.png": known("dog")}


def test_arrows_walk_through_the_answers(served, visit) -> None:
    campaign = FakeCampaign(pictures(6), ["cat", "dog"], round_budget=6, total_budget=6)
    page = visit(served(campaign))
    for key in "112":
        press(page, key)
    for item in ("photo_002.png", "photo_001.png"):
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".caption")).to_have_text(item)
    expect(page.get_by_role("button", name="cat", exact=True)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".caption")).to_have_text("photo_002.png")
    press(page, "x")
    expect(page.locator(".caption")).to_have_text("photo_003.png")
    saved(page)
    assert campaign.live() == {"photo_000.png": known("cat"), "photo_001.png": known("cat"), "photo_002.png": NONE}


@pytest.mark.parametrize("fault", [(0, None), (503, {"error": "busy"}), (429, {"error": "too fast"})])
def test_a_broken_network_loses_and_doubles_nothing(served, visit, fault) -> None:
    campaign = FakeCampaign(pictures(8), ["cat", "dog"], round_budget=8, total_budget=8)
    page = visit(served(campaign))
    press(page, "1")
    saved(page)
    campaign.refuse = lambda method, path: fault if method == "POST" else None
    for key in "2x1":
        press(page, key)
    expect(saving(page)).to_have_text("offline, 3 waiting")
    page.reload()
    expect(saving(page)).to_have_text("offline, 3 waiting")
    assert press(page, "s") == "photo_004.png"
    campaign.refuse = lambda method, path: None
    saved(page)
    assert list(campaign.live().values()) == [known("cat"), known("dog"), NONE, known("cat"), SKIP]
    assert [vote.state for vote in campaign.votes] == ["live"] * 5
    assert page.evaluate("localStorage.length") == 0


def test_an_answer_whose_confirmation_was_lost_is_not_given_twice(served, visit) -> None:
    campaign = FakeCampaign(pictures(4), ["cat"], round_budget=4, total_budget=4)
    page = visit(served(campaign))
    take, lost = campaign.answer, []

    def deaf(user: str, answers: list[dict[str, object]]) -> object:
        reply = take(user, answers)
        if lost:
            return reply
        lost.append(1)
        return 500, {"error": "taken, but the confirmation is lost"}

    campaign.answer = deaf  # type: ignore[assignment,method-assign]
    press(page, "1")
    saved(page)
    assert len([1 for method, path in campaign.requests if path == "/api/answers"]) == 2
    assert len(campaign.votes) == 1


def test_a_refused_answer_is_said_and_does_not_hold_up_the_others(served, visit) -> None:
    campaign = FakeCampaign(pictures(5), ["cat"], round_budget=5, total_budget=5)
    page = visit(served(campaign))
    take = campaign.answer

    def pick(user: str, answers: list[dict[str, object]]) -> object:
        if any(answer["item"] == "photo_001.png" for answer in answers):
            return 409, {"error": "the item is not open."}
        return take(user, answers)

    campaign.answer = pick  # type: ignore[assignment,method-assign]
    campaign.refuse = lambda method, path: (503, {}) if method == "POST" else None
    for key in "111":
        press(page, key)
    expect(saving(page)).to_have_text("offline, 3 waiting")
    campaign.refuse = lambda method, path: None
    saved(page)
    expect(page.locator(".toast")).to_contain_text("'photo_001.png' was not taken: the item is not open.")
    assert sorted(campaign.live()) == ["photo_000.png", "photo_002.png"]


def test_a_held_key_answers_once_and_an_unseen_image_not_at_all(served, visit) -> None:
    campaign = FakeCampaign(pictures(5), ["cat"], round_budget=5, total_budget=5)
    page = visit(served(campaign))
    ready(page)
    page.keyboard.down("1")
    page.keyboard.down("1")
    page.keyboard.down("1")
    page.keyboard.up("1")
    expect(page.locator(".caption")).to_have_text("photo_001.png")
    saved(page)
    assert len(campaign.votes) == 1


def test_what_users_wrote_is_text_and_never_markup(served, visit) -> None:
    evil = "<img src=/evil onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    campaign = FakeCampaign({f"{evil}{i}": evil for i in range(3)}, [evil, "plain"], 3, 3, name=evil)
    page = visit(served(campaign))
    ready(page)
    expect(page.locator(".reading")).to_have_text(evil)
    expect(page.locator(".choice .label").first).to_have_text(evil)
    press(page, "1")
    saved(page)
    page.keyboard.press("g")
    expect(page.locator(".cell").first).to_contain_text(evil)
    assert page.locator("img[src*=evil], script:not([src])").count() == 0
    assert page.title() == f"{evil} · label"
    assert ("GET", "/evil") not in campaign.requests


def test_a_flag_carries_a_note_and_can_be_taken_away(served, visit) -> None:
    campaign = FakeCampaign(pictures(3), ["cat"], round_budget=3, total_budget=3)
    page = visit(served(campaign))
    ready(page)
    page.keyboard.press("f")
    page.keyboard.type("1 cat, or 2?")  # keys are letters here
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="flag")).to_have_attribute("aria-pressed", "true")
    assert campaign.flags == {("photo_000.png", "ada"): "1 cat, or 2?"}
    assert campaign.votes == []
    page.keyboard.press("f")
    page.get_by_role("button", name="Take the flag away").press("Enter")
    expect(page.get_by_role("button", name="flag")).to_have_attribute("aria-pressed", "false")
    assert campaign.flags == {}


def test_the_overlay_names_every_key_and_can_turn_them_off(served, visit) -> None:
    campaign = FakeCampaign(pictures(3), ["cat", "dog"], round_budget=3, total_budget=3)
    page = visit(served(campaign))
    ready(page)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    for key in ("1", "2", "x", "s", "u", "⌫", "f", "g", "z", "←", "→", "?"):
        expect(dialog.locator("kbd", has_text=key).first).to_be_visible()
    page.keyboard.press("1")  # does not reach the item behind
    dialog.get_by_role("checkbox").press("Space")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("1")
    page.get_by_role("button", name="dog").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".caption")).to_have_text("photo_001.png")
    saved(page)
    assert campaign.live() == {"photo_000.png": known("dog")}


def test_thumbs_alone_suffice(served, visit) -> None:
    campaign = FakeCampaign(pictures(4), ["cat", "dog"], round_budget=4, total_budget=4)
    page = visit(served(campaign), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    for name in ("dog", "none of these", "skip"):
        ready(page)
        item = shown(page)
        page.get_by_role("button", name=name, exact=True).tap()
        expect(page.locator(".caption")).not_to_have_text(item)
    page.get_by_role("button", name="undo").tap()
    expect(page.locator(".caption")).to_have_text("photo_002.png")
    saved(page)
    assert list(campaign.live().values()) == [known("dog"), NONE]
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    smallest = min(box["height"] for b in page.locator(".panel button").all() if (box := b.bounding_box()))
    assert smallest >= 44


def test_somebody_without_a_link_is_told_so(served, visit) -> None:
    page = visit(served(FakeCampaign(pictures(2), ["cat"])), "nobody")
    expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
