/** Requests about projects. */
import { request } from '../api/client';
import type { Project, ProjectSettings } from '../api/types';

export interface ProjectWords {
  name: string;
  description?: string;
  instructions?: string;
  settings?: ProjectSettings;
}

export const createProject = (words: ProjectWords) => request<Project>('POST', '/api/projects', words);

export const saveProject = (id: string, words: ProjectWords) =>
  request<Project>('PUT', `/api/projects/${id}`, words);

/** Everything but the changed settings stays as it is. */
export const saveSettings = (project: Project, settings: Partial<ProjectSettings>) =>
  saveProject(project.id, {
    name: project.name,
    description: project.description,
    instructions: project.instructions,
    settings: { ...project.settings, ...settings },
  });
