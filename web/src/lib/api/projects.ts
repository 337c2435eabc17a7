/** Requests about projects. */
import { request } from './client';
import type { NewProject, Project, ProjectChange, ProjectSettings } from './types';

export const createProject = (words: NewProject) => request<Project>('POST', '/api/projects', words);

export const saveProject = (id: string, change: ProjectChange) =>
  request<Project>('PUT', `/api/projects/${id}`, change);

/** With all that is in it. */
export const removeProject = (id: string) => request('DELETE', `/api/projects/${id}`);

/** All its files and messages are read anew for searching. */
export const rebuildIndex = (id: string) => request('POST', `/api/projects/${id}/rebuild`);

/** The other settings stay as they are. */
export const saveSettings = (project: Project, settings: Partial<ProjectSettings>) =>
  saveProject(project.id, { settings: { ...project.settings, ...settings } });
