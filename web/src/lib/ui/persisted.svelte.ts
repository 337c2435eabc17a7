/** A setting stored on this device (localStorage): `const layout = persisted('layout', 'columns')`, then `layout.value`. */

const PREFIX = 'tertulia.';

export function persisted<T>(key: string, initial: T): { value: T } {
  let value = $state.raw(read(key, initial));
  return {
    get value() {
      return value;
    },
    set value(chosen: T) {
      value = chosen;
      write(key, chosen);
    },
  };
}

function read<T>(key: string, initial: T): T {
  try {
    const saved = localStorage.getItem(PREFIX + key);
    return saved === null ? initial : (JSON.parse(saved) as T);
  } catch {
    return initial;
  }
}

function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing still shows the choice until the page is closed.
  }
}
