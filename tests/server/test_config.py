"""Server configuration: all users get the default models that an administrator sets."""

from __future__ import annotations


async def test_all_users_get_the_default_models_of_the_administrator(world, ada, bob):
    assert (await bob.get("/api/me"))["default_models"] == []
    chosen = ["voices:alpha", "voices:beta"]
    await ada.post("/api/config", {"key": "default_models", "value": chosen})
    assert (await bob.get("/api/me"))["default_models"] == chosen
    again = await world.sign_in("bob@example.org")
    assert again.me["default_models"] == chosen
    await ada.post("/api/config/bulk", {"default_models": []})
    assert (await bob.get("/api/me"))["default_models"] == []


async def test_only_an_administrator_sets_the_default_models_and_at_most_as_many_as_there_are_seats(ada, bob):
    await bob.post("/api/config", {"key": "default_models", "value": ["voices:alpha"]}, expect=403)
    for value in (["voices:alpha"] * 9, "voices:alpha", [1]):
        await ada.post("/api/config", {"key": "default_models", "value": value}, expect=422)
    assert (await ada.get("/api/me"))["default_models"] == []
