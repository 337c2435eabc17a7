"""Common words in several languages: words that say how something is asked, not what the question is about.

They are searched for like all other words. But a passage that matches only common words of a question does
not contain its subject.
"""

from __future__ import annotations

from tertulia.library.query import STOP_WORDS
from tertulia.library.stem import stem_of
from tertulia.store.text_index import phrases

_ENGLISH = """
    able actually add afraid already although always another answer anybody anyone anything anyway
    around ask asked back bad became become begin believe best better big bit bored bring bullet bye
    came can cannot cant case certain change check cheers come comes compare compose continue cool could
    couple create day days describe detail details didn different difference do doesn doing don done
    double draft easy elaborate else end english enough even everybody everyone everything exactly
    example examples explain fact far feel few find fine first fix formal friendly full fun funny
    general gave give given gives glad go goes going gone good got great guess haha happen happened
    happy hard haven hear hello help helped hey hi hmm hope idea ideas important improve inside instead
    interesting invent isn itself keep kind know known last late later learn least left less let line
    list little ll lol long longer look lot lots love made main make makes making many maybe mean
    meaning means meet mine minute moment more morning most move mr mrs much must name names need needed
    never new next nice nobody none nope normal nothing number okay old once open opposite oops order
    others part people perfect perhaps person piece place plan play please point points poor possible
    pretty probably problem put question questions quick quickly quite ran random re read ready real
    really reason recommend remember repeat reply respond rewrite right room round said sample save saw
    say saying says second see seem seems seen send sentence sentences set several shall short shorter
    show side similar simple simply since small somebody someone something sometimes somewhere soon
    sorry sort sound speak stand start started state stay step steps stop stopped style suggest
    suggestion suggestions summarise summarize summary super sure table take taken takes talk tell test
    text th thank thanks thing things think third thought three thx tip tips today together told
    tomorrow tonight tone took top total translate translation try tried trying turn twice two type
    understand understood update use used useful uses using usually various ve version view wait want
    wanted wants wasn way ways week well went whatever whole wish wonder wonderful word words work
    worked working works world worse worst worth wouldn write writing written wrong wrote wow yeah year
    years yep yesterday
"""
_GERMAN = """
    aber alle alles als also am an auch auf aus bei bin bis bist bitte da damit danach danke dann darf
    das dass dein deine dem den denn der des dich die dies diese dieser dir doch drei du durch ein eine
    einem einen einer eines einfach einmal er erklär erklären erkläre erzähl erzähle es etwas für ganz
    geben gegen geht genau gestern gib gibt gut gute guten habe haben hallo hast hat heute hier ich ihm
    ihn ihr ihre im immer in ist ja jede jeder jetzt kann kannst kein keine können kurz kürzer lang
    lange mach machen macht man mehr mein meine meinem meinen meiner mich mir mit möchte morgen muss
    nach nein nicht nichts noch nun nur ob oder ohne recht sag sagen schon schreib schreibe schreiben
    sehr sein seine seit sich sie sind so soll sollte sollen super tun über um und uns unser unsere
    unter viel viele vielen vom von vor wann war waren warum was weil welche welcher welches wenn wer
    werden wie wieder will wir wird wo wollen worum würde zu zum zur zusammen zwei
"""
_FRENCH = """
    ai aide aider aller alors as au aucun aujourd aussi autre autres aux avait avec avez avoir bien
    bonjour bonsoir bon bonne ça car ce cela ces cet cette chaque chez ci combien comme comment court
    dans de déjà demain des deux dis dit dois donc donne donner du écris elle elles en encore entre es
    est et était été être eux explique expliquer faire fais fait faut fut ici il ils je jour la le les
    leur leurs lui ma mais me merci mes mieux moi moins mon ne nos notre nous on ont ou où oui par pas
    peu peut peux plus pour pourquoi pouvez puis qu quand que quel quelle quelles quels qui quoi raconte
    sa salut sans se sera ses si son sont sous sur ta te tes texte toi ton tous tout toute toutes très
    trois tu un une va veux voici voilà vos votre vous
"""
_SPANISH_PORTUGUESE = """
    a à acerca agora ahora algo algún alguno algumas além ante antes ao aos aquí aqui as así assim até
    aunque ayuda ayúdame bem bien boa bom buenas bueno buenos cada com como cómo con contra corto crees
    cual cuál cuáles cuando cuándo cuanto cuánto cuántos curto da dá dame das de debe decir del den
    desde después di dime do dónde donde dos e é el él ela ele ella ellos em en entonces entre era eres
    es escreva escribe ese eso esta está este esto están estas estou estoy explica explicar fácil foi
    fue fui gracias gran ha hace hacer haz han hasta hay he hola hoje hoy ir isso isto la las le les lo
    los más mais mas me mejor melhor menos mi mí mim minha mis mucho muito muchas muy na nada não nas ni
    no nos nosotros nuestra nuestro nunca o obrigado obrigada olá os otra otro ou para pelo pela pero
    poco pode podes pois por porque porqué por qué puede puedes puedo qual quando quanto quantos que qué
    quê quem quién quero quiero sabe se sé sea seja sem ser será si sí sim sin sobre solo sólo son sou
    soy su sua sus são también também tal tanto te tem tener tengo tenho tiene tienes todo toda todos
    todas tu tú tus três tres tudo um uma un una uno unos us usted vai vale ver vez você vos voy y ya yo
"""
_ITALIAN = """
    ad ai al alla alle anche ancora bene buongiorno c'è che chi ci ciao ciò col come con cosa così cui
    da dai dal dalla dammi degli dei del della delle di dimmi dove due e ed era esempio fai fammi fare
    gli grazie ha hai hanno ho i il in io la le lei li lo loro lui ma me meglio meno mi mia mie miei mio
    molto ne nei nel nella niente no noi non nostra nostro o ogni oggi per perché perfetto piacere più
    poi posso può puoi qual quale quali quando quanto quanti quella quello questa questi questo qui
    racconta scrivi se sei senza si sia siamo sono spiega spiegami sta stai su sua sue sugli sul sulla
    suo tra tre tu tua tuo tutti tutto un una uno va vi voglio voi vorrei
"""
_DUTCH_NORDIC = """
    aan als andere att av bara beter bij bra da dan dank danke dat de deg dem den denna deras det detta
    deze die dig din dina dit ditt du een eens efter ej ekki eller en enkel er ett för fra från ga gaan
    gang geef god goed goede graag ha hade han har heb hebben heeft hej het hi hier hoe hoi hon hun hur
    hva hvad hvor hvordan icke ik iets igen ikke in inte is ja jag je jeg jij jouw jullie kan kann kom
    kort korter kun kunnen laat maak maar man mange me med meer meg mer met mig mij mijn min mitt moet
    mycket na naar när nee nej niet niets nog nogmaals nu og och också of om omdat ons onze ook op over
    på sä schrijf sedan ser sig sin skriv skulle som te tack til till tot tusen uit un und under upp ut
    vad van var vara vart veel vel veldig vem voor vraag vår waar waarom wanneer wat we weer wel welke
    wie wij wil willen worden wordt zal ze zeg zij zijn zo zonder zou
"""
_SLAVIC = """
    ale bardzo bez być był było byłaby chcę ci co czego czy daj dla dlaczego do dobrze dobry dzień
    dziękuję gdzie go i ich ile inny ja jak jaka jaki jakie jakoś jej jest jeszcze jestem już każdy
    kiedy kto która który które ma mam mi mnie może możesz moja moje mój moim mojej na nad nam napisz
    nas nie niej nich nim nic no o od on ona oni po pod powiedz poproszę prosić proszę przed przez przy
    raz się są skąd słychać sobie ta tak taki tam te tego ten teraz to trzeba tu twój ty tylko u w we
    wiem więc więcej wszystko wyjaśnij z za zrobić ze że krócej cześć zł а бы был была были было быть в
    вам вас ваш весь во вот все всё всего вы где да давай дай дела для до его ее её если ест есть ещё же
    за здесь и из или им их к как какая какие какой какую когда коротко короче кто ли лучше мне много
    можешь можно может мой моя мои мы на надо написать напиши нас наш не него нее нет ни но ну о об
    объясни один она они оно опять от очень по под подробнее покороче пожалуйста понятно потом почему
    при привет продолжай раз расскажи с сам свой себя сейчас сделай сделать сказать скажи сколько снова
    со спасибо так также такое там твой тебе тебя тем тоже только ты тут у уже хочу чем через что чтобы
    это этого этой этом этот эту эта эти я
"""
_OTHERS = """
    acaba ama anlat bana başka bazı belki ben benim beri bir biraz biri birkaç biz bu bunu çok çünkü da
    daha de değil diye dolayı en gibi göre hangi hani hem hep her hiç iki için ile ise iyi kadar kaç kez
    ki kim kısa lütfen mı mi misin mu mü nasıl nasılsın ne neden nedir nerede niçin niye o olan olarak
    oldu olsun olur onu sen şey şu tamam tekrar teşekkür teşekkürler tüm var ve veya ya yap yaz yazar
    yok في من على إلى عن مع هذا هذه ذلك التي الذي هل ما ماذا متى أين كيف كم لماذا أنا أنت هو هي نحن أن
    إن لا لم لن ليس كان كانت يكون قد كل بعض أي أو و ثم بل حتى إذا لو شكرا جزيلا مرحبا فضلك نعم اكتب اشرح
    أخبرني لي لك به है हैं था थी थे का की के को में से पर और या कि यह वह ये वे मैं हम आप तुम मुझे मेरा
    मेरी मेरे क्या कैसे कब कहाँ क्यों कौन कितना कितने नहीं हाँ एक कृपया धन्यवाद नमस्ते हो होता होती कर
    करो करें लिखो बताओ भी तो ही
"""
_UNSPACED = """
    我们 你们 他们 什么 怎么 怎样 如何 为什么 哪里 哪个 多少 几个 可以 可不 能不 请问 请再 请用 谢谢
    你好 最近 帮我 给我 告诉 一下 一个 一首 一些 一点 写一 讲个 解释 翻译 继续 再短 没有 没问 问题 好的
    这个 那个 这是 不是 还是 就是 的是 是什 是谁 么做 한번 그래 감사 안녕 하세 세요 니다 습니 어떻 떻게
    무엇 누구 언제 어디 왜요 해줘 알려 려줘 써줘 주세 에서 으로 입니 있어 나요 教え 続け 何で 何を 何が
    誰で 誰が 私は 私の
"""


def _plain(written: str) -> frozenset[str]:
    every = (phrase for word in written.split() for phrase in phrases(word))
    return frozenset(every)


_SPACED_LISTS = (
    _ENGLISH,
    _GERMAN,
    _FRENCH,
    _SPANISH_PORTUGUESE,
    _ITALIAN,
    _DUTCH_NORDIC,
    _SLAVIC,
    _OTHERS,
)
COMMON = STOP_WORDS.union(*map(_plain, (*_SPACED_LISTS, _UNSPACED)))
COMMON_STEMS = frozenset(stem_of(word) for word in COMMON if word.isascii())


def is_common(phrase: str) -> bool:
    """True for a common word of the full-text index, or two common characters of a script without spaces."""
    if all("\u3040" <= letter <= "\u309f" or letter == " " for letter in phrase):
        return True  # Japanese endings and particles are written in hiragana alone
    return phrase in COMMON or (phrase.isascii() and stem_of(phrase) in COMMON_STEMS)
