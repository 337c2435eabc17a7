/** The icon for a file type. */
import Braces from '@lucide/svelte/icons/file-code';
import Plain from '@lucide/svelte/icons/file';
import Image from '@lucide/svelte/icons/file-image';
import Words from '@lucide/svelte/icons/file-text';
import type { IconComponent } from '$lib/ui/icon';

const CODE =
  /\.(c|cc|cpp|cs|css|go|h|html?|java|jsx?|json|kt|lua|mjs|php|py|r|rb|rs|scala|sh|sql|svelte|swift|toml|tsx?|vue|xml|ya?ml)$/i;
const WORDS = /\.(csv|docx?|epub|md|odt|pdf|pptx?|rtf|tex|tsv|txt|xlsx?)$/i;

export function fileIcon(name: string, mimeType: string): IconComponent {
  if (mimeType.startsWith('image/')) return Image;
  if (CODE.test(name)) return Braces;
  return WORDS.test(name) || mimeType.startsWith('text/') ? Words : Plain;
}
