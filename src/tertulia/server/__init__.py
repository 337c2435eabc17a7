"""HTTP server: routes, sign-in, security middleware, uploads, streams and the live socket."""
