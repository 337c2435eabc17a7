"""Providers: the model catalogue, the clients of all model providers, and the local models.

The path of a call, from the model request to a decoded word:

registry.ProviderRegistry.stream              finds the model's endpoint and dialect
  retry.RetryPolicy.stream_with_retries       repeats it until the first output; circuit_breaker may refuse it
    client_pool.ClientPool.client_for         the client of this endpoint and dialect, kept for later
    client.DialectClient.stream               joins the four steps below
      openai_chat.request                     ModelRequest -> HTTP request (or anthropic, google, …)
      transport.Transport.post                sends it; errors.ErrorFactory explains a refusal
      transport.EventStream.read              bytes -> SSE events (sse.SseDecoder), with all time limits
      stream_decoder.StreamDecoder.decode     SSE events -> TextDelta, ThinkingDelta (openai_chat.ChatDecoder)
"""
