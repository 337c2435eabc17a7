/** Requests about files; what changes comes back by the stream. */
import { request } from '$lib/api/client';
import type { FileText, FileMetadata, ProjectFile, Uploaded, VersionList } from '$lib/api/types';

export const fileAddress = (projectId: string, fileId: string, rest = '') =>
  `/api/projects/${projectId}/files/${fileId}${rest}`;
const of = (file: ProjectFile, rest = '') => fileAddress(file.project_id, file.id, rest);

export const readText = (projectId: string, fileId: string, from: number) =>
  request<FileText>('GET', fileAddress(projectId, fileId, `/text?start_line=${from}`));

/** As it was brought in, not as it was read for searching. */
export const readContent = (file: ProjectFile) => request<ArrayBuffer>('GET', of(file));

export const createText = (projectId: string, path: string, text: string) =>
  request<Uploaded>(
    'POST',
    `/api/projects/${projectId}/files?${new URLSearchParams({ path })}`,
    new Blob([text]),
  );

/** Not when someone else changed it meanwhile. */
export const changeText = (file: ProjectFile, version: number, text: string) =>
  request<ProjectFile>('PUT', of(file), new Blob([text]), { ifMatch: version });

export const rename = (file: ProjectFile, path: string) => request('PUT', of(file, '/path'), { path });

export const saveMetadata = (file: ProjectFile, change: Partial<FileMetadata>) =>
  request('PATCH', of(file, '/metadata'), change);

export const remove = (file: ProjectFile) => request('DELETE', of(file));

export const readVersions = (file: ProjectFile) => request<VersionList>('GET', of(file, '/versions'));

export const readDiff = (file: ProjectFile, number: number) =>
  request<{ unified: string }>('GET', of(file, `/versions/${number}/diff`));

export const restore = (file: ProjectFile, number: number) =>
  request('POST', of(file, `/versions/${number}/restore`));

export const downloadAddress = (file: ProjectFile) => of(file);

/** A zip can be unpacked on its way, into the folder it came in; everything else stays as it is. */
export function uploadAddress(projectId: string, name: string, unpack: boolean, key: string): string {
  const isUnpacked = unpack && /\.zip$/i.test(name);
  const folder = name.slice(0, name.lastIndexOf('/') + 1);
  const query = isUnpacked
    ? new URLSearchParams({ unzip: 'true', ...(folder && { path: folder }), upload_key: key })
    : new URLSearchParams({ path: name, upload_key: key });
  return `/api/projects/${projectId}/files?${query}`;
}
