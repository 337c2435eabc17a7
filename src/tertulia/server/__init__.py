"""The way in over HTTP: routes per noun, sign-in, streams."""
