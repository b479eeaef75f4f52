"""Texts of many kinds, to compare token estimates with a real tokenizer. The same texts in every run."""

# ruff: noqa: RUF001  letters of other scripts

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Sequence
from uuid import UUID

__all__ = ["sample_texts"]

_ENGLISH = """
A conversation with an agent is a tree, not a list. Whoever goes back to an earlier message and asks something else starts
a new branch, and both branches stay. The store appends entries and never changes one; what the model sees is computed
from the path between the root and the current leaf. If the path is longer than the window of the model, the older part
is replaced by a summary. Nothing is lost by that: the summary is one more entry, and the entries before it can be shown
again at any time.

Programs crash in the middle of a turn. A tool may have written a file while its result was never recorded, or the answer
of the model was shown on the screen and not yet stored. When the process starts again, it reads the last entries, finds
the calls without a result, and tells the model about them. The user only notices that the answer took a little longer.

Several processes work on the same store. Each of them takes a lease before it writes, and renews it while it works. If a
process is stopped for too long, its lease ends, another one takes over, and the late writes of the first are refused.
Reading needs no lease: a reader sees a consistent state, because every change is one transaction. Backups are copies of
one file; they can be made while the program runs, and they are checked with a single command before they are needed.

How fast is it? On an ordinary laptop a message is durable after half a millisecond, most of which the disk takes. Lists
of 100,000 conversations open at once, since every query has an index. What is rarely needed, such as the search index,
is kept in a file of its own and can be built again.
"""
_PYTHON = '''
class Leases:
    """Who may write to a thread, and until when."""

    def __init__(self, clock: Callable[[], int], seconds: float = 30.0) -> None:
        self._clock = clock
        self._length_ns = int(seconds * 1_000_000_000)
        self._held: dict[str, Lease] = {}

    def acquire(self, thread_id: str, owner: str) -> Lease:
        """Return a new lease; raise LeaseHeldError while another owner has one."""
        now = self._clock()
        held = self._held.get(thread_id)
        if held is not None and held.owner != owner and held.expires_ns > now:
            raise LeaseHeldError(thread_id, held.owner, held.expires_ns)
        lease = Lease(owner=owner, token=(held.token + 1 if held else 1), expires_ns=now + self._length_ns)
        self._held[thread_id] = lease
        return lease

    def renew(self, thread_id: str, lease: Lease) -> Lease:
        if self._held.get(thread_id) != lease:
            raise LeaseLostError(thread_id)
        return self.acquire(thread_id, lease.owner)


def totals(rows: Iterable[tuple[str, float]], *, minimum: float = 0.0) -> dict[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for name, value in rows:
        found[name.strip().lower()] += value
    return {name: round(total, 2) for name, total in sorted(found.items()) if total >= minimum}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Add up a file of names and numbers.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--minimum", type=float, default=0.0, help="leave out smaller totals")
    options = parser.parse_args()
    with options.file.open(newline="") as opened:
        print(totals(((row[0], float(row[1])) for row in csv.reader(opened)), minimum=options.minimum))
'''

_SENTENCES = {
    "German": (
        "Das Programm muss alle Nachrichten des Benutzers speichern, damit das Gespräch nach einem Neustart an derselben "
        "Stelle fortgesetzt werden kann. Wenn der Server nicht antwortet, wiederholen wir die Anfrage dreimal. Größere "
        "Änderungen müssen vorher abgesprochen werden. "
    ),
    "French": (
        "Le programme doit enregistrer tous les messages de l'utilisateur, afin que la conversation puisse reprendre au "
        "même endroit après un redémarrage. Si le serveur ne répond pas, nous répétons la requête trois fois. "
    ),
    "Polish": (
        "Program musi zapisywać wszystkie wiadomości użytkownika, aby po ponownym uruchomieniu można było kontynuować "
        "rozmowę od tego samego miejsca. Jeśli serwer nie odpowiada, powtarzamy żądanie trzy razy. "
    ),
    "Vietnamese": (
        "Chương trình phải lưu tất cả tin nhắn của người dùng để sau khi khởi động lại có thể tiếp tục cuộc trò chuyện "
        "từ cùng một chỗ. Nếu máy chủ không trả lời, chúng tôi lặp lại yêu cầu ba lần. "
    ),
    "Russian": (
        "Программа должна сохранять все сообщения пользователя, чтобы после перезапуска можно было продолжить разговор "
        "с того же места. Если сервер не отвечает, мы повторяем запрос три раза и затем сообщаем об ошибке. Решили "
        "использовать базу данных, потому что она надёжнее файлов. "
    ),
    "Ukrainian": (
        "Програма повинна зберігати всі повідомлення користувача, щоб після перезапуску можна було продовжити розмову. "
        "Якщо сервер не відповідає, ми повторюємо запит тричі. Вирішили використовувати базу даних. "
    ),
    "Greek": (
        "Το πρόγραμμα πρέπει να αποθηκεύει όλα τα μηνύματα του χρήστη, ώστε μετά την επανεκκίνηση να μπορεί να "
        "συνεχιστεί η συζήτηση από το ίδιο σημείο. "
    ),
    "Arabic": (
        "يجب على البرنامج أن يحفظ جميع رسائل المستخدم حتى يمكن متابعة المحادثة من المكان نفسه بعد إعادة التشغيل. "
    ),
    "Hebrew": "התוכנית חייבת לשמור את כל ההודעות של המשתמש כדי שאפשר יהיה להמשיך את השיחה מאותו מקום. ",
    "Hindi": "प्रोग्राम को उपयोगकर्ता के सभी संदेश सहेजने चाहिए ताकि पुनः आरंभ के बाद बातचीत उसी जगह से जारी रह सके। ",
    "Thai": "โปรแกรมต้องบันทึกข้อความทั้งหมดของผู้ใช้ เพื่อให้สามารถสนทนาต่อจากที่เดิมได้หลังจากเริ่มใหม่ ",
    "Chinese": (
        "程序必须把用户的所有消息保存在日志中，以便重启之后可以从同一个地方继续对话。如果服务器没有响应，我们会重试三次，"
        "然后报告错误。我们决定使用数据库，因为它比文件更可靠。"
    ),
    "Chinese, traditional": (
        "程式必須把使用者的所有訊息保存在日誌中，以便重新啟動之後可以從同一個地方繼續對話。如果伺服器沒有回應，我們會重試三次。"
    ),
    "Japanese": (
        "プログラムは、再起動した後でも同じ場所から会話を続けられるように、ユーザーのすべてのメッセージを保存しなければなりません。"
        "サーバーが応答しない場合は、三回まで再試行してからエラーを報告します。"
    ),
    "Korean": (
        "프로그램은 다시 시작한 후에도 같은 곳에서 대화를 계속할 수 있도록 사용자의 모든 메시지를 저장해야 합니다. "
        "서버가 응답하지 않으면 세 번 다시 시도한 다음 오류를 보고합니다. "
    ),
}
_EMOJI = ["😀", "😂", "🚀", "🎉", "🔥", "👍", "💡", "🐍", "📦", "✅", "⚠️", "🛠️", "🧪", "👩‍💻", "🇩🇪", "🇫🇷"]
_CAMEL = ["getUserName", "setMaxRetryCount", "HTTPServerError", "parseJsonBody", "onClickHandler", "isEnabled"]
_SQL = (
    "SELECT u.id, u.name, count(o.id) AS orders FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.age > 30;\n"
)


def sample_texts(seed: int = 7) -> dict[str, str]:
    """Return a text for each kind."""
    rng = random.Random(seed)
    english, python = _ENGLISH * 8, _PYTHON * 8
    words = english.split()
    return {
        "English": english,
        "Python": python,
        **_languages(),
        **_encoded(rng, words, english),
        **_numbers(rng, words),
        **_structured(rng, words, python),
        "emoji": "".join(rng.choice(_EMOJI) for _ in range(1_500)),
        "English with emoji": " ".join(
            rng.choice(words) + (rng.choice(_EMOJI) if rng.random() < 0.3 else "") for _ in range(1_500)
        ),
    }


def _languages() -> dict[str, str]:
    return {name: text * 10 for name, text in _SENTENCES.items()}


def _encoded(rng: random.Random, words: Sequence[str], english: str) -> dict[str, str]:
    body = base64.b64encode(rng.randbytes(12_000)).decode()
    return {
        "base64": body,
        "base64, in lines": "\n".join(body[at : at + 76] for at in range(0, len(body), 76)),
        "tokens of the web": _lines(
            40, lambda: ".".join(base64.urlsafe_b64encode(rng.randbytes(n)).decode().rstrip("=") for n in (27, 90, 32))
        ),
        "hex": rng.randbytes(8_000).hex(),
        "hex, capitals": rng.randbytes(8_000).hex().upper(),
        "checksums": _lines(150, lambda: f"{rng.randbytes(32).hex()}  {rng.choice(words)}"),
        "UUIDs": _lines(300, lambda: str(UUID(bytes=rng.randbytes(16)))),
        "hexdump": _hexdump(rng.randbytes(4_000)),
        "hexdump of text": _hexdump(english[:4_000].encode()),
    }


def _hexdump(data: bytes) -> str:
    rows = [(at, data[at : at + 16]) for at in range(0, len(data), 16)]
    return "\n".join(
        f"{at:08x}  {row[:8].hex(' ')}  {row[8:].hex(' ')}  |{''.join(chr(x) if 32 <= x < 127 else '.' for x in row)}|"
        for at, row in rows
    )


def _numbers(rng: random.Random, words: Sequence[str]) -> dict[str, str]:
    return {
        "CSV, 6 digits": _lines(250, lambda: ",".join(f"{rng.gauss(0, 10):.6f}" for _ in range(8))),
        "CSV, 17 digits": _lines(150, lambda: ",".join(repr(rng.random()) for _ in range(6))),
        "CSV, mixed": _lines(
            400, lambda: f"{rng.choice(words)},{rng.randrange(10**5)},{_date(rng)},{rng.random():.3f}"
        ),
        "integers": " ".join(str(rng.randrange(10**9)) for _ in range(1_500)),
        "digits": "".join(str(rng.randrange(10)) for _ in range(8_000)),
    }


def _structured(rng: random.Random, words: Sequence[str], python: str) -> dict[str, str]:
    records = [
        {"id": rng.randrange(10**6), "name": rng.choice(words), "is_active": rng.random() < 0.5, "score": rng.random()}
        for _ in range(200)
    ]
    return {
        "JSON": json.dumps(records),
        "JSON, indented": json.dumps(records, indent=2),
        "JSON around code": json.dumps({"content": python}),
        "log": _lines(
            200, lambda: f"{_date(rng)}T10:{rng.randrange(60):02}:07.120Z INFO {' '.join(rng.sample(words, 6))}"
        ),
        "paths": _lines(
            300, lambda: "./src/" + "/".join(rng.sample(["core", "utils", "lib", "test", "dist"], 3)) + "/a.py"
        ),
        "SQL": _SQL * 40,
        "names in camel case": " ".join(rng.choice(_CAMEL) for _ in range(800)),
        "Markdown table": _lines(200, lambda: "| " + " | ".join(rng.sample(words, 4)) + " |"),
        "box drawing": _lines(
            60, lambda: "│ " + " │ ".join(rng.sample(words, 3)) + " │\n├" + "┼".join(["─" * 14] * 3) + "┤"
        ),
        "terminal colours": "".join(f"\x1b[{rng.randrange(30, 38)}m{rng.choice(words)}\x1b[0m " for _ in range(400)),
        "indentation": _lines(400, lambda: " " * rng.randrange(40) + rng.choice(words)),
    }


def _lines(count: int, line: Callable[[], str]) -> str:
    return "\n".join(line() for _ in range(count))


def _date(rng: random.Random) -> str:
    return f"2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
