// Values of charts on hover, and by the arrow keys when a chart has the focus.
const tip = document.createElement('div');
tip.className = 'tip';
tip.hidden = true;
document.body.append(tip);
const say = document.querySelector('#say');

function show(mark, x, y) {
  document.querySelectorAll('.chart .at').forEach((other) => other.classList.remove('at'));
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add('at');
  tip.textContent = mark.dataset.t;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 8))}px`;
  tip.style.top = `${Math.min(y + 14, innerHeight - height - 8)}px`;
}

// Scrolling moves the chart below a pointer that rests; only one that moves asks for a value.
let x = 0, y = 0;
addEventListener('pointermove', (event) => {
  if (event.clientX === x && event.clientY === y) return;
  [x, y] = [event.clientX, event.clientY];
  const mark = event.target.closest?.('[data-t]');
  if (mark || event.pointerType === 'mouse') show(mark, event.clientX, event.clientY);
});
addEventListener('pointerdown', (event) => show(event.target.closest?.('[data-t]'), event.clientX, event.clientY));

for (const chart of document.querySelectorAll('svg.chart')) {
  const marks = [...chart.querySelectorAll('[data-t]')];
  let at = marks.length;
  const go = (to) => {
    at = Math.max(0, Math.min(marks.length - 1, to));
    const mark = marks[at];
    mark.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
    const box = mark.getBoundingClientRect();
    show(mark, box.left, box.bottom - 8);
    say.textContent = mark.dataset.t;
  };
  chart.addEventListener('keydown', (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: marks.length - 1 }[event.key];
    if (to === undefined || !marks.length) {
      if (event.key === 'Enter' && marks[at]?.dataset.href) location.href = marks[at].dataset.href;
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    go(to);
  });
  chart.addEventListener('click', (event) => {
    const href = event.target.dataset.href;
    if (href) location.href = href;
  });
  chart.addEventListener('blur', () => show(null));
}

// On a narrow screen a chart scrolls sideways, and begins with the newest.
for (const chart of document.querySelectorAll('.wide-chart')) chart.scrollLeft = chart.scrollWidth;

// Until everything is counted, the figures grow; a reader who has opened something is left alone.
if (document.querySelector('[data-counting]'))
  setTimeout(() => { if (!document.querySelector('details[open]')) location.reload(); }, 700);
