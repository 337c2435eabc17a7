import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig } from 'vitest/config';

const server = process.env.TERTULIA_SERVER ?? 'http://127.0.0.1:8787';

export default defineConfig({
  plugins: [sveltekit()],
  // changeOrigin stays off: the server compares Origin with Host.
  server: { proxy: { '/api': { target: server, ws: true } } },
  build: { target: 'es2022' },
  test: {
    include: ['src/**/*.test.ts'],
    environment: 'jsdom',
    restoreMocks: true,
  },
  resolve: process.env.VITEST ? { conditions: ['browser'] } : undefined,
});
