import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';
import files from './build.js';
import { readFileSync } from 'node:fs';

const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));

/** @type {import('@sveltejs/kit').Config} */
export default {
  preprocess: vitePreprocess(),
  compilerOptions: { runes: true },
  kit: {
    adapter: files(),
    paths: { relative: false },
    version: { name: version }, // not the time of day: the same source builds the same files
    typescript: {
      config: (config) => ({ ...config, include: [...config.include, '../*.js', '../*.ts'] }),
    },
  },
};
