import type { Component } from 'svelte';

/** An icon that takes a size, such as those of @lucide/svelte. */
export type IconComponent = Component<{ size?: number | string; class?: string }>;
