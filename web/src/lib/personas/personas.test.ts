import { describe, expect, it } from 'vitest';
import { blank, canChange, gistOf, nameFault } from './personas';

describe('a persona', () => {
  it('has a name that can be written with an @', () => {
    expect(nameFault('The Sage')).toBeNull();
    expect(nameFault(' ')).toBe('Give it a name.');
    expect(nameFault('a:b')).toMatch(/no \[/);
    expect(nameFault('!!!')).toMatch(/letters/);
  });

  it('begins with a model that is ready, and with the demo only where there is no other', () => {
    const demo = { key: 'builtin:small', is_available: true, is_demo: true };
    const keyless = { key: 'a:large', is_available: false, is_demo: false };
    const ready = { key: 'b:large', is_available: true, is_demo: false };
    expect(blank([demo, keyless, ready]).model).toBe('b:large');
    expect(blank([demo, keyless]).model).toBe('builtin:small');
    expect(blank([keyless]).model).toBe('');
  });

  it('is changed by whoever it belongs to', () => {
    const projects = { P: { role: 'editor' as const }, Q: { role: 'viewer' as const } };
    const user = { role: 'user' } as never;
    const admin = { role: 'admin' } as never;
    expect(canChange({ scope: 'all', project_id: null }, user, projects)).toBe(false);
    expect(canChange({ scope: 'all', project_id: null }, admin, projects)).toBe(true);
    expect(canChange({ scope: 'user', project_id: null }, user, projects)).toBe(true);
    expect(canChange({ scope: 'project', project_id: 'P' }, user, projects)).toBe(true);
    expect(canChange({ scope: 'project', project_id: 'Q' }, admin, projects)).toBe(false);
  });

  it('is known by its first sentence', () => {
    expect(gistOf('Looks for 2.5 things. Then rests.')).toBe('Looks for 2.5 things.');
    expect(gistOf(' No end ')).toBe('No end');
    expect(gistOf('# Role\n\n**Never** rename my_var.')).toBe('Role.');
  });
});
