// Runs before the first paint, so that a dark room never flashes white. Written by lib/appearance.
try {
  const chosen = JSON.parse(localStorage.getItem('tertulia.appearance') ?? '{}');
  for (const name of ['theme', 'density', 'reading', 'size'])
    if (typeof chosen[name] === 'string') document.documentElement.dataset[name] = chosen[name];
} catch {
  // A browser that keeps nothing gets the system's theme.
}
