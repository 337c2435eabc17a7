/**
 * The build as the server needs it: static files with one shell, every file compressed beforehand, and the two
 * Latin faces preloaded. The server names the shell's inline script in its policy by hashing it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import staticFiles from '@sveltejs/adapter-static';

const FOLDER = 'build';
const SHELL = join(FOLDER, 'index.html');
const PRELOADED = [/^alegreya-latin-wght-normal\..*woff2$/, /^hanken-grotesk-latin-wght-normal\..*woff2$/];

export default function files() {
  const inner = staticFiles({ pages: FOLDER, assets: FOLDER, fallback: 'index.html' });
  return {
    ...inner,
    name: 'tertulia-files',
    /** @param {import('@sveltejs/kit').Builder} builder */
    async adapt(builder) {
      await inner.adapt(builder);
      writeFileSync(SHELL, preloadFaces(readFileSync(SHELL, 'utf8'), builder.getAppPath()));
      await builder.compress(FOLDER);
    },
  };
}

/** @param {string} html @param {string} appPath */
function preloadFaces(html, appPath) {
  const assets = `${appPath}/immutable/assets`;
  const faces = readdirSync(join(FOLDER, assets)).filter((name) => PRELOADED.some((face) => face.test(name)));
  const links = faces.map(
    (name) => `<link rel="preload" as="font" type="font/woff2" href="/${assets}/${name}" crossorigin>`,
  );
  return html.replace('</head>', `${links.join('')}</head>`);
}
