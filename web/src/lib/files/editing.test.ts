import { expect, it } from 'vitest';
import { closed, opened } from './editing';

const bytes = (text: string) => new TextEncoder().encode(text).buffer;

it.each(['a\nb\n', 'a\r\nb\r\n', '\uFEFFname;price\r\nrye;6\r\n', ''])(
  'saves %j as it was found when nothing is changed',
  (whole) => {
    const found = opened(bytes(whole))!;
    expect(found.text).not.toMatch(/[\r\uFEFF]/);
    expect(closed(found.text, found)).toBe(whole);
  },
);

it('does not open what is not UTF-8, which would be saved as something else', () => {
  expect(opened(new Uint8Array([0x63, 0x61, 0x66, 0xe9]).buffer)).toBeNull();
});
