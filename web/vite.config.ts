import { sveltekit } from '@sveltejs/kit/vite';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const server = process.env.TERTULIA_SERVER ?? 'http://127.0.0.1:8000';

export default defineConfig({
  plugins: [announcerWithoutStyle(), oneFormatOfFace(), sveltekit(), oneFrame()],
  // changeOrigin stays off: the server compares Origin with Host.
  server: { proxy: { '/api': { target: server, ws: true } } },
  // The tokens are written with light-dark(); rewritten for older browsers, a theme could not be shown inside another.
  // No file becomes a data: address: the policy lets fonts come from this server alone.
  build: { target: 'es2022', assetsInlineLimit: 0, cssTarget: ['chrome123', 'firefox125', 'safari17.5'] },
  test: {
    restoreMocks: true,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Pure code needs no page to run in; what mounts a component does, and is named so.
    projects: [
      {
        extends: true,
        test: {
          name: 'pure',
          environment: 'node',
          include: ['src/**/*.test.ts'],
          exclude: ['src/**/*.svelte.test.ts'],
        },
      },
      { extends: true, test: { name: 'page', environment: 'jsdom', include: ['src/**/*.svelte.test.ts'] } },
    ],
  },
  resolve: process.env.VITEST ? { conditions: ['browser'] } : undefined,
});

/** SvelteKit hides its route announcer with a style attribute, which the server's policy forbids; .sr does the same. */
function announcerWithoutStyle(): Plugin {
  return {
    name: 'announcer-without-style',
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith('/generated/root.svelte')) return;
      const changed = code.replace(/(id="svelte-announcer"[^>]*?)\sstyle="[^"]*"/, '$1 class="sr"');
      if (changed === code)
        this.error('SvelteKit writes its announcer in another way now; look at generated/root.svelte.');
      return changed;
    },
  };
}

/** KaTeX offers each of its faces in three formats; every browser we build for reads the smallest. */
function oneFormatOfFace(): Plugin {
  return {
    name: 'one-format-of-face',
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith('/katex.min.css')) return;
      return code.replace(/,url\([^)]*\.(?:woff|ttf)\)\s*format\([^)]*\)/g, '');
    },
  };
}

/** What every page needs comes in one file instead of fifty small ones; the inspector is not part of it: signing in needs none. */
function oneFrame(): Plugin {
  const frame =
    /node_modules\/(svelte|@sveltejs|@lucide|esm-env|clsx)\/|src\/lib\/(api|appearance|commands|conversations|frame|live|people|projects|seats|shell(?!\/Inspector)|ui)\//;
  const groups = [{ name: 'frame', test: (id: string) => frame.test(id) }];
  return {
    name: 'one-frame',
    enforce: 'post',
    config: ({ build }) =>
      build?.ssr ? {} : { build: { rolldownOptions: { output: { codeSplitting: { groups } } } } },
  };
}
