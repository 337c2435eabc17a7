"""What an administrator sets for the whole server reaches everyone it is meant for."""

from __future__ import annotations


async def test_the_models_an_administrator_chooses_are_what_everyone_begins_with(world, ada, bob):
    assert (await bob.get("/api/me"))["default_models"] == []
    chosen = ["voices:alpha", "voices:beta"]
    await ada.post("/api/config", {"key": "default_models", "value": chosen})
    assert (await bob.get("/api/me"))["default_models"] == chosen
    again = await world.sign_in("bob@example.org")
    assert again.me["default_models"] == chosen
    await ada.post("/api/config/bulk", {"default_models": []})
    assert (await bob.get("/api/me"))["default_models"] == []


async def test_only_an_administrator_chooses_them_and_no_more_than_a_table_seats(ada, bob):
    await bob.post("/api/config", {"key": "default_models", "value": ["voices:alpha"]}, expect=403)
    for value in (["voices:alpha"] * 9, "voices:alpha", [1]):
        await ada.post("/api/config", {"key": "default_models", "value": value}, expect=422)
    assert (await ada.get("/api/me"))["default_models"] == []
