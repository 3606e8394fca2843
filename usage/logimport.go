package usage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// LogImporter counts the lines of other servers' log files, by the code that counts the answers of a server.
//
// A file is counted once, however often it is given: a cell says how much of it is counted, and is written with the figures, in the same commits. A
// run that was killed is repeated from the beginning of the file, without what is written already: so double clicks and
// sessions are known as they were. If lines were added to the file, only these count.
type LogImporter struct {
	Store   Store
	Schemes *stele.Schemes
	Agents  *Agents
	Space   func(ctx context.Context, id stele.ID) (stele.NamespaceKey, error)           // to which a name belongs; the zero key: to none
	Find    func(ctx context.Context, id stele.ID) (record stele.ID, ok bool, err error) // the public record that a name leads to
	Now     func() time.Time
	Log     *slog.Logger // nothing is logged if nil

	Combined bool                     // lines have a referring page and a user agent
	Base     string                   // what stands before names in the paths of requests: "/" or "/resolve/"
	Host     string                   // of the server that wrote the file; its own pages are not referrers. "": not known
	Country  func(netip.Addr) Country // as in [Options]
	Cut      bool                     // as in [Options]
	Lists    string                   // digests of the files behind Agents and Country: a run that was killed needs the same ones, or
	NewLists bool                     // the user agrees that the rest of a file is counted with other lists than its first part
	DryRun   bool                     // write nothing
	Progress func(lines int)          // is called with lines that are done; may be nil
}

// LogSummary is what became of the lines of a log file.
type LogSummary = apijson.UsageLogSummary

const (
	maxFirst     = 5
	maxCached    = 50_000                  // names that are remembered
	maxCachedKey = 1 << 10                 // bytes of a target that is remembered
	partLines    = 100_000                 // lines whose figures are written at once
	maxLogTries  = 20                      // of a commit that servers get ahead of
	maxTarget    = 3*stele.MaxText + 1<<10 // bytes of a target that may name something: each byte of the name is encoded
	futureLimit  = secondsDay
	defaultClass = Regular

	firstYear = 788918400 // 1995, in Unix seconds: earlier times are those of clocks that were not set
)

// Import counts a file, which open reads from its beginning, several times: it must be the same file then, whatever its name names meanwhile. Conflict if the file
// is not what it was when a part of it was counted, if it was counted with other options, or if it is counted by another process now.
//
// A run that adds no figures leaves no mark: the options may have been wrong.
func (i *LogImporter) Import(ctx context.Context, name string, open func() (io.ReadCloser, error)) (*LogSummary, error) {
	ctx = asServer(ctx)
	file, err := i.look(ctx, name, open)
	if err != nil {
		return nil, err
	}
	total := &LogSummary{File: name, Incomplete: file.rest, DryRun: i.DryRun}
	switch m := &file.mark; {
	case m.Options != "" && m.Options != i.options():
		return nil, refuse(stele.Conflict, "usage.log-other-options", "{file} was counted, or a part of it, with other options; repeat the command with these: {options}", name, m.Options)
	case m.Goal > 0 && m.Lists != i.Lists && !i.NewLists:
		return nil, refuse(stele.Conflict, "usage.log-other-lists", "a part of {file} was counted with other lists of robots or countries; repeat the command with the same files and the same version of this program, or add --new-lists to count the rest with the lists of now", name)
	case m.Goal > 0:
		m.Lists = i.Lists
	}
	for {
		m := &file.mark
		begun := m.Goal > 0
		if !begun {
			if file.end == m.Base {
				return total, nil
			}
			*m = logMark{Base: m.Base, Sum: m.Sum, Lines: m.Lines, Heads: m.Heads, Options: i.options(), Goal: file.end, GoalSum: file.sum, Lists: i.Lists, Begun: i.Now().Unix()}
		}
		run := i.newRun(ctx, name, file)
		if err := run.read(open, total); err != nil {
			return nil, err
		}
		if !begun && !run.wrote {
			return total, nil
		}
		if err := run.commit(nil, logMark{Base: m.Goal, Sum: m.GoalSum, Lines: m.Lines, Heads: m.Heads, Options: m.Options}); err != nil {
			return nil, err
		}
	}
}

// options returns what decides how lines count, for people who repeat a run.
func (i *LogImporter) options() string {
	format := "common"
	if i.Combined {
		format = "combined"
	}
	return strings.TrimSpace(fmt.Sprintf("--format %s --base %s%s%s", format, i.base(), optional(" --host ", i.Host), map[bool]string{true: " --cut-addresses"}[i.Cut]))
}

func optional(flag, value string) string {
	if value == "" {
		return ""
	}
	return flag + value
}

func (i *LogImporter) base() string { return "/" + strings.TrimPrefix(cmp.Or(i.Base, "/"), "/") }

func (i *LogImporter) look(ctx context.Context, name string, open func() (io.ReadCloser, error)) (*logFile, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	f, err := lookAt(ctx, i.Store, name, in)
	return f, errors.Join(err, in.Close())
}

// logRun counts a part of a file.
type logRun struct {
	*LogImporter
	ctx     context.Context
	name    string
	file    *logFile
	tally   *tally
	keeper  *keeper
	key     *dayKey
	classes *classes
	window  logWindow
	names   map[string]logName
	sum     LogSummary
	day     int32
	first   int64      // the earliest time that counts
	digest  *logDigest // of the lines that were read
	counted int        // lines since the run began to count, in the order in which they count
	part    int        // of these, where this part begins
	before  bool       // the lines are counted already
	wrote   bool       // figures were written
	fault   error      // of the registry
}

// logName is what the target of a request names.
type logName struct {
	id     stele.ID // of the record, or what was asked for
	isName bool
	found  bool
}

func (i *LogImporter) newRun(ctx context.Context, name string, file *logFile) *logRun {
	log := i.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &logRun{
		LogImporter: i, ctx: ctx, name: name, file: file, names: make(map[string]logName), key: newDayKey(), classes: newClasses(),
		keeper: newKeeper(i.Store, log), digest: newLogDigest(),
	}
	r.tally = newTally(r.space)
	return r
}

// space returns the namespace of a name. If the registry can't tell it the run ends, without the figures of this part.
func (r *logRun) space(id stele.ID) stele.NamespaceKey {
	key, err := r.Space(r.ctx, id)
	if err != nil && r.fault == nil {
		r.fault = err
	}
	return key
}

// read counts the lines up to the goal.
func (r *logRun) read(open func() (io.ReadCloser, error), total *LogSummary) error {
	in, err := open()
	if err != nil {
		return err
	}
	lines := newLineReader(in)
	number := 0
	r.tally.rolled = rolledMonth(r.Now())
	r.before = r.file.mark.Base > 0
	for err == nil && lines.end < r.file.mark.Goal {
		if number%1000 == 999 {
			if r.Progress != nil {
				r.Progress(1000)
			}
			err = r.ctx.Err()
		}
		if err == nil {
			err = r.line(lines, &number, total)
		}
	}
	if err == nil {
		err = r.window.drain(r.count)
	}
	if err == nil && r.digest.text() != r.file.mark.GoalSum {
		err = refuse(stele.Conflict, "usage.log-changed", "{file} was changed while it was counted, by more than new lines at its end; what is counted so far stays", r.name)
	}
	if err == nil {
		err = r.flush()
	}
	r.sum.Doubles = int(r.tally.doubles)
	r.sum.Overflow, r.sum.LeftOut = r.tally.overflow, r.keeper.lost
	addSummary(total, &r.sum)
	return errors.Join(err, in.Close())
}

// line reads a line.
func (r *logRun) line(lines *lineReader, number *int, total *LogSummary) error {
	begin := lines.end
	text, fits, err := lines.next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return refuse(stele.Conflict, "usage.log-shorter", "{file} got shorter while it was counted; what is counted is written", r.name)
		}
		return err
	}
	*number++
	r.sum.Lines++
	l, ok := parseLogLine(text, r.Combined)
	if seen, common := l, ok; fits {
		if !common {
			seen, common = parseLogLine(text, false)
		}
		r.digest.add(&seen, common, lines.end-begin)
	} else {
		r.digest.add(nil, false, lines.end-begin)
	}
	if !fits || !ok || l.at < firstYear || l.at > r.file.mark.Begun+futureLimit {
		r.sum.Unreadable++
		if len(r.sum.First) < maxFirst {
			r.sum.First = append(r.sum.First, *number)
		}
	} else if err := r.window.add(l, len(text), r.count); err != nil {
		return err
	}
	if r.before && lines.end >= r.file.mark.Base {
		return r.begin(*number, total)
	}
	return nil
}

// begin begins to count: the lines before were counted by an earlier run.
func (r *logRun) begin(number int, total *LogSummary) error {
	if err := r.window.drain(r.count); err != nil {
		return err
	}
	err := r.flush() // of which nothing is written
	r.before, r.sum, r.counted, r.part, r.first = false, LogSummary{}, 0, 0, 0
	r.tally.doubles, r.tally.overflow, r.tally.dropped = 0, 0, 0
	if total.Lines == 0 {
		total.Before = number
	}
	return err
}

// count counts a line. Where a part ends depends on the lines of the file only, not on what the registry knows of them: a repeated run, before which names were registered,
// has the same parts.
func (r *logRun) count(l *logLine) error {
	back := l.at < r.tally.now-maxBack
	day := dayOf(l.at)
	if !back {
		day = max(day, r.day) // it is less than a minute late
	}
	if day != r.day || r.counted-r.part >= partLines {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.counted++
	if day != r.day {
		r.key.change()
		r.day = day
	}
	if back {
		r.sum.Late++
		r.tally.setBack(l.at)
	}
	r.tally.advance(max(l.at, int64(day)*secondsDay))
	reading, err := r.reading(l)
	if err != nil || reading == nil {
		return err
	}
	if r.first == 0 || l.at < r.first {
		r.first = l.at
	}
	r.tally.count(reading)
	return r.fault
}

// kindOf returns what a reader got; false if that does not count.
func kindOf(l *logLine) (Kind, bool) {
	if l.method != "GET" || l.user != "" {
		return 0, false
	}
	switch l.status {
	case 301, 302, 303, 307, 308:
		return Redirect, true
	case 200:
		return Description, true
	case 404:
		return Failure, true
	}
	return 0, false
}

// reading returns what is to be counted of a line; nil if that is nothing.
func (r *logRun) reading(l *logLine) (*reading, error) {
	kind, ok := kindOf(l)
	if !ok {
		r.sum.NotCounted++
		return nil, nil
	}
	agent := clip(l.agent, maxAgent)
	hash := r.classes.hash(agent)
	class := r.classes.find(hash)
	if class == unclassified {
		class = defaultClass
		if r.Combined {
			class = r.Agents.Class(agent)
		}
		r.classes.keep(hash, class)
	}
	if class == Ignored {
		r.sum.NotCounted++
		return nil, nil
	}
	n, err := r.named(l.target)
	switch {
	case err != nil:
		return nil, err
	case !n.isName:
		r.sum.NotNames++
		return nil, nil
	case kind != Failure && !n.found, kind == Failure && r.space(n.id).Scheme == "":
		r.sum.Unknown++
		return nil, r.fault
	case class == Robot:
		r.sum.Robots++
	case kind == Failure:
		r.sum.Failures++
	default:
		r.sum.Counted++
	}
	host := ""
	if h := refererHost(l.referrer); kind == Redirect && h != "" && !strings.EqualFold(h, r.Host) {
		host = registrable(h)
	}
	return &reading{at: max(l.at, int64(r.day)*secondsDay), id: n.id, visitor: r.visitor(l.client, hash), class: class, kind: kind, host: host, lands: r.Country != nil}, nil
}

// visitor returns the hash of a reader. Where the file has names of hosts, these tell readers apart.
func (r *logRun) visitor(client string, agent uint64) uint64 {
	from, err := netip.ParseAddr(client)
	if err != nil {
		return withCountry(r.key.visitor(netip.Addr{}, agent^maphash.String(r.key.seed, client)), 0)
	}
	if r.Cut {
		from = cut(from)
	}
	visitor := r.key.visitor(from, agent)
	if r.Country != nil {
		visitor = withCountry(visitor, r.Country(from))
	}
	return visitor
}

// named returns what the target of a request names.
func (r *logRun) named(target string) (n logName, err error) {
	n, ok := r.names[target]
	if ok || len(target) > maxTarget {
		return n, nil
	}
	for _, id := range r.identifiers(target) {
		if !n.isName {
			n.id, n.isName = id, true
		}
		record, found, err := r.Find(r.ctx, id)
		if err != nil {
			return n, err
		}
		if found {
			n = logName{id: record, isName: true, found: true}
			break
		}
	}
	if len(target) > maxCachedKey {
		return n, nil
	}
	if len(r.names) >= maxCached {
		clear(r.names)
	}
	r.names[strings.Clone(target)] = n
	return n, nil
}

// nameInQuery begins the paths of requests whose query is a name (RFC 2169).
const nameInQuery = "uri-res/"

// identifiers returns what the target of a request may name, as the resolver reads it: the path after the base as a name, and as part of a link to the host.
func (r *logRun) identifiers(target string) (list []stele.ID) {
	if at := strings.Index(target, "://"); at >= 0 && at < 6 { // of a request to a proxy
		_, path, _ := strings.Cut(target[at+3:], "/")
		target = "/" + path
	}
	text, ok := strings.CutPrefix(target, r.base())
	if !ok {
		return nil
	}
	text = strings.TrimPrefix(text, ".info/")
	path, query, _ := strings.Cut(text, "?")
	if strings.HasPrefix(path, nameInQuery) {
		path = query
	}
	plain := path
	if decoded, err := url.PathUnescape(path); err == nil {
		plain = decoded
	}
	texts := []string{plain}
	if r.Host != "" {
		texts = append(texts, "https://"+r.Host+"/"+path)
	}
	for _, text := range texts {
		if text == "" || len(text) > stele.MaxText {
			continue
		}
		if id, err := r.Schemes.Parse(text); err == nil {
			list = append(list, id)
		}
	}
	return list
}

// flush ends a part, and writes its figures if they are not written yet.
func (r *logRun) flush() error {
	begin, end := r.part, r.counted
	r.part = end
	r.tally.tellVisitors()
	r.forgetTyped()
	list := r.tally.linked()
	if r.fault != nil || r.before || len(list) == 0 {
		return r.fault
	}
	list = append(list, beganAt(time.Unix(r.first, 0)))
	slices.SortStableFunc(list, func(a, b addition) int { return strings.Compare(a.cell, b.cell) })
	mark := r.file.mark
	switch {
	case end <= mark.Done || r.DryRun:
		return nil
	case begin < mark.Done:
		return refuse(stele.Conflict, "usage.log-other-parts", "a part of {file} was counted by another version of this program; repeat the command with that version", r.name)
	case begin == mark.Done && mark.Last != nil:
		list = slices.DeleteFunc(list, func(a addition) bool { return a.cell <= string(mark.Last) })
	}
	for len(list) > 0 {
		n := chunk(list)
		mark.Done, mark.Last = begin, []byte(list[n-1].cell)
		if n == len(list) {
			mark.Done, mark.Last = end, nil
		}
		if err := r.commit(list[:n], mark); err != nil {
			return err
		}
		r.wrote = true
		list = list[n:]
	}
	return nil
}

// forgetTyped forgets names that lead nowhere that would not be kept: of days that are long past, and those that were typed once on a day that is over.
func (r *logRun) forgetTyped() {
	today := dayOf(r.Now().Unix())
	for key, n := range r.tally.failed {
		if key.day < today-keepFailed || key.day < today && n < 2 {
			delete(r.tally.failed, key)
		}
	}
}

// commit adds figures and changes the mark of the file, both or neither.
func (r *logRun) commit(list []addition, mark logMark) error {
	next := mark.bytes()
	if r.DryRun || bytes.Equal(next, r.file.have) {
		r.file.mark = mark
		return nil
	}
	list = flat(list)
	for try := 1; ; try++ {
		changes, damaged, err := r.keeper.changes(r.ctx, list)
		if err != nil {
			return err
		}
		marks := []stele.CellChange{{Name: r.file.cell, Before: r.file.have, After: next}}
		if r.file.have == nil { // the file is a new one, unless another process thinks so too
			marks = append(marks, stele.CellChange{Name: r.file.guard(), Before: r.file.begun, After: r.file.begunNow()})
		}
		err = r.Store.KeepUsage(r.ctx, append(slices.Clone(changes), marks...)...)
		if err != nil && stele.KindOf(err) != stele.Conflict {
			return err // what is written, the next run finds out
		}
		if err == nil {
			r.keeper.remember(changes)
		} else if again, fault := r.overtaken(next); fault != nil {
			return fault
		} else if again {
			if try == maxLogTries {
				return err
			}
			continue
		}
		r.keeper.tell(damaged)
		r.file.have, r.file.mark = next, mark
		return nil
	}
}

// overtaken finds out why a commit was in conflict. It reports whether the commit is to be made again, because a server changed a cell with figures: if not, the commit was
// made. Conflict if another process counts the file.
func (r *logRun) overtaken(next []byte) (again bool, err error) {
	r.keeper.known.clear()
	have, err := r.Store.UsageCell(r.ctx, r.file.cell)
	if err != nil || bytes.Equal(have, next) { // a store that tried twice had made it
		return false, err
	}
	begun := r.file.begun
	if r.file.have == nil {
		if begun, err = r.Store.UsageCell(r.ctx, r.file.guard()); err != nil {
			return false, err
		}
	}
	if !bytes.Equal(have, r.file.have) || !bytes.Equal(begun, r.file.begun) {
		return false, refuse(stele.Conflict, "usage.log-counted-elsewhere", "{file} is counted by another process, or another log file that begins with the same line; wait for it, and repeat the command", r.name)
	}
	return true, nil
}

// flat returns additions with those that belong to them, in the order of cells.
func flat(list []addition) (all []addition) {
	for _, a := range list {
		all = append(append(all, a), a.with...)
	}
	slices.SortStableFunc(all, func(a, b addition) int { return strings.Compare(a.cell, b.cell) })
	return all
}

// beganAt notes when counting began, if no earlier time is known.
func beganAt(at time.Time) addition {
	return addition{cell: beginCell, adder: addFunc(func(value []byte) ([]byte, error) {
		if have, err := time.Parse(time.RFC3339, string(value)); err == nil && !at.Before(have) {
			return value, nil
		}
		return []byte(at.UTC().Format(time.RFC3339)), nil
	})}
}

// addSummary adds what became of the lines of another part.
func addSummary(s, o *LogSummary) {
	s.Lines += o.Lines
	s.Counted += o.Counted - o.Doubles
	s.Doubles += o.Doubles
	s.Robots += o.Robots
	s.Failures += o.Failures
	s.Unknown += o.Unknown
	s.NotNames += o.NotNames
	s.NotCounted += o.NotCounted
	s.Unreadable += o.Unreadable
	s.First = append(s.First, o.First...)[:min(len(s.First)+len(o.First), maxFirst)]
	s.Late += o.Late
	s.Overflow += o.Overflow
	s.LeftOut += o.LeftOut
}
