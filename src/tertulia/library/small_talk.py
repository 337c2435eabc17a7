"""Small talk: sentences unrelated to any project, the baseline for similarity scores.

A question's similarity to these sentences is its similarity to anything at all. The baseline is needed
because each embedding model has its own scale, and in languages that a model hardly knows all texts look
alike to it. A passage fits only if it is clearly more similar to the question than small talk is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tertulia.library.embedders import Embedder, OnCharge

NEAREST = 5
"""The baseline is the mean over this many sentences that are most similar to the question."""


class SmallTalk:
    """The sentences as vectors of one embedder, made with the first question."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._vectors: Any = None
        self._lock = asyncio.Lock()

    async def likeness(self, questions: Sequence[bytes], billed: OnCharge) -> tuple[float, ...]:
        """The small-talk baseline for each question vector; raises EmbeddingFailed."""
        import numpy as np

        if self._vectors is None:
            async with self._lock:
                if self._vectors is None:
                    vectors = await self.embedder.embed(SENTENCES, is_query=True, billed=billed)
                    self._vectors = np.stack([_floats(vector) for vector in vectors])
        similarities = np.stack([_floats(question) for question in questions]) @ self._vectors.T
        nearest = np.sort(similarities, axis=1)[:, -NEAREST:].mean(axis=1)
        return tuple(map(float, nearest))


def _floats(vector: bytes) -> Any:
    import numpy as np

    return np.frombuffer(vector, dtype=np.float16).astype(np.float32)


SENTENCES = tuple(
    """
    Hi, nice to hear from you. How was your day?
    Thanks so much for all your help with this.
    No problem, happy to help. Let me know if you need anything else.
    Could you say that again in other words?
    Make it shorter and a bit friendlier.
    Write a short poem for a friend.
    Tell me a funny story about an animal.
    What should I cook for dinner tonight?
    Give me some ideas for a gift.
    Where should we go on holiday this summer?
    What is the largest country in the world?
    Explain in simple words how an engine works.
    How much is twelve times nine?
    Translate this sentence into another language.
    The weather is nice today and the children play outside.
    I am tired and would like to sleep.
    Which film should we watch this evening?
    How do I clean a stain from my shirt?
    Who are you and what can you do for me?
    Write a small program that prints a list of numbers.
    What does this command do on the terminal?
    A famous painter who lived in the last century.
    Good luck with your exam tomorrow!
    My dog likes to run in the park.
    Hallo, wie war dein Tag?
    Vielen Dank für die schnelle Hilfe.
    Kannst du das bitte anders formulieren?
    Schreib mir eine kleine Geschichte für Kinder.
    Was soll ich heute Abend kochen?
    Welches Land ist das größte der Welt?
    Das Wetter ist heute schön und die Sonne scheint.
    Wohin fahren wir im Sommer in den Urlaub?
    Bonjour, comment s'est passée ta journée ?
    Merci pour ta réponse rapide.
    Peux-tu le dire autrement, s'il te plaît ?
    Écris une petite histoire pour les enfants.
    Qu'est-ce que je pourrais cuisiner ce soir ?
    Quel est le plus grand pays du monde ?
    Il fait beau aujourd'hui et le soleil brille.
    Où partons-nous en vacances cet été ?
    Hola, ¿cómo te fue hoy?
    Gracias por la respuesta tan rápida.
    ¿Puedes decirlo con otras palabras?
    Escribe un cuento corto para niños.
    ¿Qué puedo preparar para la cena?
    ¿Cuál es el país más grande del mundo?
    Hoy hace buen tiempo y brilla el sol.
    ¿Adónde vamos de vacaciones este verano?
    Ciao, com'è andata la giornata?
    Grazie per la risposta veloce.
    Puoi dirlo con altre parole?
    Cosa posso preparare per cena?
    Qual è il paese più grande del mondo?
    Oggi il tempo è bello e c'è il sole.
    Olá, como foi o teu dia?
    Obrigado pela resposta rápida.
    Podes dizer isso por outras palavras?
    O que posso fazer para o jantar?
    Qual é o maior país do mundo?
    Hoje está bom tempo e faz sol.
    Hallo, hoe was je dag?
    Bedankt voor het snelle antwoord.
    Kun je dat anders zeggen?
    Wat zal ik vanavond eten?
    Het is vandaag mooi weer en de zon schijnt.
    Hej, hur var din dag?
    Tack för det snabba svaret.
    Kan du säga det på ett annat sätt?
    Vad ska jag laga till middag?
    Det är fint väder idag och solen skiner.
    Cześć, jak ci minął dzień?
    Dzięki za szybką odpowiedź.
    Czy możesz powiedzieć to inaczej?
    Co ugotować dziś na kolację?
    Dzisiaj jest ładna pogoda i świeci słońce.
    Привет, как прошёл твой день?
    Спасибо за быстрый ответ.
    Скажи это, пожалуйста, другими словами.
    Что приготовить сегодня на ужин?
    Какая страна самая большая в мире?
    Сегодня хорошая погода и светит солнце.
    Merhaba, günün nasıl geçti?
    Hızlı cevabın için teşekkür ederim.
    Bunu başka kelimelerle söyler misin?
    Akşam yemeğine ne pişirsem?
    Bugün hava güzel ve güneş parlıyor.
    こんにちは、今日はどんな一日でしたか。
    早い返事をありがとう。
    別の言葉で言ってください。
    今晩の夕食は何を作ろうかな。
    世界で一番大きい国はどこですか。
    今日は天気がよくて気持ちがいい。
    你好，今天过得怎么样？
    谢谢你这么快回复我。
    请换一种说法。
    今天晚饭吃什么好呢？
    世界上最大的国家是哪个？
    今天天气很好，阳光明媚。
    안녕, 오늘 하루 어땠어?
    빨리 답해 줘서 고마워.
    다른 말로 다시 말해 줘.
    오늘 저녁에 뭘 먹을까?
    세계에서 가장 큰 나라는 어디야?
    오늘은 날씨가 맑고 좋다.
    مرحبا، كيف كان يومك؟
    شكرا على الرد السريع.
    هل يمكنك قول ذلك بكلمات أخرى؟
    ماذا أطبخ الليلة للعشاء؟
    الطقس جميل اليوم والشمس مشرقة.
    नमस्ते, आपका दिन कैसा रहा?
    जल्दी जवाब देने के लिए धन्यवाद।
    क्या आप इसे दूसरे शब्दों में कह सकते हैं?
    आज रात के खाने में क्या बनाऊँ?
    आज मौसम अच्छा है और धूप निकली है।
    """.strip().split("\n    ")
)
