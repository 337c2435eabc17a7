import { describe, expect, it } from 'vitest';
import type { LeftOut, Receipt, Segment, SourceLocation, Usage } from '$lib/api/types';
import {
  cachedPart,
  layersOf,
  leftOutTitle,
  openAtFirst,
  sharesOf,
  takenOut,
  tillOf,
  tokensOf,
} from './receipt';

function segment(layer: Segment['layer'], change: Partial<Segment> = {}): Segment {
  return {
    layer,
    role: 'user',
    text: 'text',
    reason: 'recent',
    tokens: 10,
    source_id: null,
    round_number: null,
    ends_cacheable: false,
    starts_message: true,
    picture: null,
    location: null,
    match: null,
    step: null,
    note: '',
    ...change,
  };
}

function receipt(...segments: Segment[]): Receipt {
  return { model: 'a:b', budget_tokens: 100, segments, left_out: [], effort: null, cached_segments: 0 };
}

function at(location: Partial<SourceLocation>): SourceLocation {
  return {
    path: null,
    start_line: null,
    end_line: null,
    file_name: null,
    conversation_title: null,
    round_number: null,
    speaker: null,
    ...location,
  };
}

function leftOut(change: Partial<LeftOut>): LeftOut {
  return {
    layer: 'rounds',
    reason: 'over_budget',
    tokens: 5,
    source_id: null,
    round_number: null,
    location: null,
    reference: null,
    limit: null,
    note: '',
    ...change,
  };
}

const passage = segment('retrieved', {
  text: 'From docs/auth.md [docs/auth.md:45-67]:\nA token',
  reason: 'retrieved',
  match: { strength: 'strong', score: 0.8, why: '3 of 4 words' },
  location: at({ path: 'docs/auth.md', start_line: 45, end_line: 67 }),
  source_id: 'chunk',
});

describe('a receipt', () => {
  it('names a passage by its file and lines and says how well it matched', () => {
    const [layer] = layersOf(receipt(segment('retrieved', { reason: 'search_introduction' }), passage));
    expect(layer).toMatchObject({ name: 'Found by search', count: '1 passage', tokens: 20 });
    expect(layer!.pieces).toEqual([
      {
        name: 'docs/auth.md:45-67',
        why: 'strong match · 3 of 4 words',
        tokens: 10,
        isCached: false,
        text: passage.text,
        without: 'chunk',
        place: { kind: 'file', path: 'docs/auth.md', from: 45, to: 67 },
        picture: null,
      },
    ]);
  });

  it('says where each piece can be read: a file, its lines, or a round', () => {
    const places = layersOf(
      receipt(
        segment('always', { reason: 'always_included', location: at({ path: 'docs/plan.md' }) }),
        segment('rounds', { round_number: 2 }),
        segment('retrieved', { location: at({ path: 'docs/a b.md', start_line: 3, end_line: 3 }) }),
        segment('retrieved', { location: at({ conversation_title: 'Trains', round_number: 4 }) }),
        segment('question', { reason: 'asked_now', text: 'From x.md, lines 1 to 2:' }),
      ),
    ).flatMap(({ pieces }) => pieces.map(({ place }) => place));
    expect(places).toEqual([
      { kind: 'file', path: 'docs/plan.md', from: null, to: null },
      { kind: 'round', number: 2 },
      { kind: 'file', path: 'docs/a b.md', from: 3, to: 3 },
      null,
      null,
    ]);
  });

  it('lets replies of earlier rounds be left out, but not the questions', () => {
    const [layer] = layersOf(
      receipt(
        segment('rounds', { round_number: 1, source_id: 'q', text: '[odd]: a question' }),
        segment('rounds', { round_number: 1, source_id: 'own', role: 'assistant' }),
        segment('rounds', { round_number: 1, source_id: 'other', location: at({ speaker: 'Beta' }) }),
        segment('rounds', { round_number: 1, source_id: 'nameless' }),
      ),
    );
    expect(layer!.pieces.map(({ name, without }) => [name, without])).toEqual([
      ['Round 1, the question', null],
      ['Round 1, its own reply', 'own'],
      ['Round 1, Beta', 'other'],
      ['Round 1, a reply', 'nameless'],
    ]);
  });

  it('names the speaker of every reply, its own among them, as the speaker is called', () => {
    const [layer] = layersOf(
      receipt(
        segment('rounds', { round_number: 1, source_id: 'q' }),
        segment('rounds', {
          round_number: 1,
          source_id: 'own',
          role: 'assistant',
          location: at({ speaker: 'gpt-4o mini' }),
        }),
        segment('rounds', { round_number: 1, source_id: 'other', location: at({ speaker: 'Beta' }) }),
      ),
    );
    expect(layer!.pieces.map(({ name }) => name)).toEqual([
      'Round 1, the question',
      'Round 1, gpt-4o mini',
      'Round 1, Beta',
    ]);
  });

  it('says that something was attached, and shows a picture that was shown', () => {
    const picture = { content_hash: 'x', mime_type: 'image/png' };
    const [layer] = layersOf(
      receipt(
        segment('question', { reason: 'attached', source_id: 'a', location: at({ file_name: 'rota.md' }) }),
        segment('question', {
          reason: 'attached',
          source_id: 'b',
          location: at({ file_name: 'sea.png' }),
          picture,
        }),
        segment('question', {
          reason: 'attached_not_shown',
          source_id: 'c',
          location: at({ file_name: 'film.bin' }),
        }),
      ),
    );
    expect(layer!.pieces.map(({ name, why, picture }) => [name, why, picture])).toEqual([
      ['rota.md', 'attached', null],
      ['sea.png', 'attached', '/api/attachments/b?inline=true'],
      ['film.bin', 'attached, not shown', null],
    ]);
  });

  it('names what was attached, and lets it be left out, now and later', () => {
    const photo = {
      reason: 'attached' as const,
      source_id: 'a',
      location: at({ file_name: 'photo.png' }),
      round_number: 1,
    };
    const [rounds, question] = layersOf(
      receipt(
        segment('rounds', photo),
        segment('rounds', { round_number: 1, source_id: 'q' }),
        segment('question', { ...photo, round_number: 2 }),
        segment('question', { reason: 'asked_now', source_id: 'q2' }),
      ),
    );
    expect(rounds!.pieces.map(({ name, without }) => [name, without])).toEqual([
      ['Round 1, photo.png', 'a'],
      ['Round 1, the question', null],
    ]);
    expect(question!.pieces.map(({ name, without }) => [name, without])).toEqual([
      ['photo.png', 'a'],
      ['Your message', null],
    ]);
  });

  it('names what an earlier question was about, and lets it be left out', () => {
    const about = { round_number: 2, source_id: 'said' };
    const [layer] = layersOf(
      receipt(
        segment('rounds', { ...about, reason: 'replied_to', text: '[Replying to Beta: "no"]' }),
        segment('rounds', { ...about, reason: 'quoted', text: '[Quoting Beta: "no"]' }),
        segment('rounds', { round_number: 2, source_id: 'q', reason: 'recent' }),
      ),
    );
    expect(layer!.pieces.map(({ name, without }) => [name, without])).toEqual([
      ['Round 2, what it replies to', 'said'],
      ['Round 2, what it quotes', 'said'],
      ['Round 2, the question', null],
    ]);
  });

  it('names each part of the question by what it is for', () => {
    const parts: Partial<Segment>[] = [
      { reason: 'round_note' },
      { reason: 'same_round' },
      { reason: 'task', step: 'critique' },
      { reason: 'reply_so_far' },
      { reason: 'continue' },
      { reason: 'other', note: 'as it was called once' },
    ];
    const [layer] = layersOf(receipt(...parts.map((part) => segment('question', part))));
    expect(layer!.pieces.map(({ name }) => name)).toEqual([
      'Round number and title',
      'Reply of this round',
      'Instructions: critique',
      'The reply so far',
      'Request to continue',
      'As it was called once',
    ]);
  });

  it('never offers to leave out the question itself', () => {
    const [layer] = layersOf(receipt(segment('question', { reason: 'asked_now', source_id: 'q' })));
    expect(layer!.pieces[0]).toMatchObject({ name: 'Your message', without: null });
  });

  it('draws each layer by its part of the budget, and what stayed free', () => {
    const shown = receipt(segment('system', { tokens: 20 }), segment('question', { tokens: 30 }));
    expect(tokensOf(shown)).toBe(50);
    expect(sharesOf(shown)).toEqual([
      { layer: 'system', part: 0.2 },
      { layer: 'question', part: 0.3 },
      { layer: 'free', part: 0.5 },
    ]);
  });

  it('opens what was looked up first, else the question', () => {
    expect(openAtFirst(layersOf(receipt(segment('system'), passage, segment('question'))))).toBe('retrieved');
    expect(openAtFirst(layersOf(receipt(segment('system'), segment('question'))))).toBe('question');
  });

  it('says how much came from the cache, if anything', () => {
    const usage = { input_tokens: 200, cached_tokens: 150 } as Usage;
    expect(cachedPart(usage)).toBe('75%');
    expect(cachedPart({ ...usage, cached_tokens: 0 })).toBe('');
    expect(cachedPart(null)).toBe('');
  });

  it('says of each piece whether the provider had it already', () => {
    const shown = {
      ...receipt(segment('system'), segment('rounds'), segment('question')),
      cached_segments: 2,
    };
    expect(layersOf(shown).map(({ pieces }) => pieces[0]!.isCached)).toEqual([true, true, false]);
  });

  it('knows what was taken out before, so that it stays out', () => {
    const left_out = [
      leftOut({ source_id: 'k1', reason: 'removed_by_user' }),
      leftOut({ source_id: 'k2', reason: 'not_among_best', limit: 3 }),
    ];
    expect(takenOut({ ...receipt(), left_out })).toEqual(['k1']);
  });

  it('names what was left out', () => {
    const names = [
      leftOut({ layer: 'always', location: at({ path: 'docs/plan.md' }) }),
      leftOut({ round_number: 3, location: at({ file_name: 'photo.png' }) }),
      leftOut({ round_number: 3 }),
      leftOut({ round_number: 3, location: at({ speaker: 'Beta' }) }),
      leftOut({ round_number: 3, reference: 'quoted' }),
      leftOut({ reason: 'outside_window', round_number: 20 }),
      leftOut({ layer: 'retrieved', location: at({ path: 'a.md', start_line: 3, end_line: 3 }) }),
      leftOut({ layer: 'retrieved', location: at({ conversation_title: '', round_number: 2 }) }),
      leftOut({ layer: 'retrieved', reason: 'search_off' }),
      leftOut({ layer: 'retrieved' }),
    ].map(leftOutTitle);
    expect(names).toEqual([
      'docs/plan.md',
      'photo.png',
      'Round 3',
      'Round 3, Beta',
      'What round 3 quotes',
      'Earlier rounds',
      'a.md:3',
      'Round 2',
      'The search',
      'A passage',
    ]);
  });
});

describe('the till', () => {
  const usage = { input_tokens: 3_000, cached_tokens: 2_000, output_tokens: 100 } as Usage;
  const prices = {
    input_micros: 3_000_000,
    cached_micros: 300_000,
    output_micros: 15_000_000,
    written_micros: null,
  };

  it('says what each kind of token came to, and what the cache saved', () => {
    expect(tillOf({ ...usage, cost_micros: 5_100 }, prices)).toEqual({
      lines: [
        { words: 'read from cache', tokens: 2_000, micros: 600 },
        { words: 'new', tokens: 1_000, micros: 3_000 },
        { words: 'written', tokens: 100, micros: 1_500 },
      ],
      saved: 5_400,
    });
  });

  it('names no part when the parts do not make up what was charged', () => {
    for (const [cost_micros, known] of [
      [6_000, prices] as const,
      [null, prices] as const,
      [5_100] as const,
    ]) {
      const till = tillOf({ ...usage, cost_micros }, known);
      expect(till.lines.map(({ micros }) => micros)).toEqual([null, null, null]);
      expect(till.saved).toBe(0);
    }
  });
});
