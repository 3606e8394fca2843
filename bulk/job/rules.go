package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// keptRules are the rules of a namespace before a job changed them. They are kept before the change, so that it can be undone.
type keptRules struct {
	Existed bool            `json:"existed,omitempty"` // the namespace was there
	Before  json.RawMessage `json:"before"`            // the namespace, with nothing but its rules
	After   string          `json:"after"`             // the digest of the same after the change
}

func ruleCell(job string, n int) string { return fmt.Sprintf("%s%s %08d", ruleCells, job, n) }

// rulesDocument returns a namespace with nothing but its rules, as JSON.
func rulesDocument(ns *stele.Namespace) []byte {
	return registrar.AppendSettings(nil, &stele.Namespace{Scheme: ns.Scheme, Prefix: ns.Prefix, Rules: ns.Rules})
}

func rulesDigest(ns *stele.Namespace) string { return digestOf(rulesDocument(ns)) }

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// rulesOf returns the rules that a namespace has; nil if there is none, or if the caller may not see it.
func (b *Board) rulesOf(ctx context.Context, key stele.NamespaceKey) []stele.Rule {
	ns, err := b.o.Registrar.Namespace(ctx, key)
	if err != nil {
		return nil
	}
	return ns.Rules
}

// addSpace adds the row of a namespace, which has these rules now.
func (j *Judgement) addSpace(row *bulk.Row, now []stele.Rule) {
	r := Row{Line: row.Line, Text: textOf(row), Kind: kindOf(row), Name: row.Namespace.Prefix, Space: true, Rules: len(row.Namespace.Rules)}
	if r.Kind == Refused {
		r.Err = row.Err
	}
	text := func(rules []stele.Rule, i int) string {
		if i >= len(rules) {
			return ""
		}
		line := rules[i].Pattern
		for k := range rules[i].Targets {
			t := &rules[i].Targets[k]
			line += " -> " + t.URL
			if t.Type != "" {
				line += " (" + string(t.Type) + ")"
			}
			if t.Status != 0 {
				line += " " + strconv.Itoa(t.Status)
			}
		}
		return line
	}
	for i := range max(len(now), len(row.Namespace.Rules)) {
		if before, after := text(now, i), text(row.Namespace.Rules, i); before != after {
			r.Changes = append(r.Changes, registrar.FieldChange{Path: fmt.Sprintf("rules[%d]", i), Old: before, New: after})
		}
	}
	j.Counts.add(r.Kind)
	j.Rows = append(j.Rows, r)
}

// writeAll writes rows of records and of namespaces, in their order: names of a folder may need its namespace.
func (w *working) writeAll(ctx context.Context, rows []*bulk.Row, file *rowsOf) error {
	var records []*bulk.Row
	for i, row := range rows {
		if row.Namespace == nil || row.Err != nil {
			records = append(records, row)
			continue
		}
		if err := w.writeRows(ctx, records, file); err != nil {
			return err
		}
		records = nil
		if err := w.writeRules(ctx, w.job.Done+i, row); err != nil {
			return err
		}
	}
	return w.writeRows(ctx, records, file)
}

// writeRules writes the namespace of row number n, after the rules that it has now were kept.
func (w *working) writeRules(ctx context.Context, n int, row *bulk.Row) error {
	cell := ruleCell(w.job.ID, n)
	value, kept, err := w.rulesKept(ctx, cell)
	if err != nil {
		return err
	}
	again := value != nil
	now, err := w.Board.o.Registrar.Namespace(ctx, row.Namespace.Key())
	if err != nil && !errors.Is(err, stele.NotFound) {
		return err
	}
	if err == nil && len(row.Namespace.Rules) > 0 {
		row.RulesOnly = true // also if it was made since the file was read, and has settings that the file does not know
	}
	if !again {
		if kept.Existed = now != nil; now == nil {
			now = &stele.Namespace{Scheme: row.Namespace.Scheme, Prefix: row.Namespace.Prefix}
		}
		kept.Before, kept.After = rulesDocument(now), rulesDigest(row.Namespace)
		if value, err = w.saveRules(ctx, cell, &kept); err != nil {
			return err
		}
	}
	if err := w.holds(); err != nil {
		return err
	}
	if err := bulk.IngestNamespace(ctx, w.Board.o.Registrar, row, registrar.ImportOptions{Update: w.job.Upload.Update}); err != nil {
		return err
	}
	if again && row.Unchanged() && !(kept.Existed && digestOf(kept.Before) == kept.After) {
		row.Err = nil // an earlier attempt wrote it; it is counted as that did
	}
	row.RulesOnly = row.RulesOnly && kept.Existed
	if row.Rejected() { // there is nothing to undo
		return w.save(ctx, func(*Job) {}, stele.CellChange{Name: cell, Before: value})
	}
	return nil
}

// rulesKept returns what is kept of a namespace, with the cell's value; a nil value if nothing is.
func (w *working) rulesKept(ctx context.Context, cell string) (value []byte, kept keptRules, err error) {
	value, _, err = w.Board.read(ctx, cell, &kept)
	return value, kept, err
}

func (w *working) saveRules(ctx context.Context, cell string, kept *keptRules) (value []byte, err error) {
	c, err := change(cell, nil, kept)
	if err != nil {
		return nil, err
	}
	return c.After, w.save(ctx, func(*Job) {}, c)
}

// keepRules keeps the rules that an undo changes, so that it can be undone, too.
func (w *working) keepRules(ctx context.Context, n int, now, next *stele.Namespace) error {
	cell := ruleCell(w.job.ID, n)
	value, _, err := w.rulesKept(ctx, cell)
	if err != nil || value != nil {
		return err
	}
	_, err = w.saveRules(ctx, cell, &keptRules{Existed: true, Before: rulesDocument(now), After: rulesDigest(next)})
	return err
}

var errRulesChanged = stele.Messagef("job.rules-changed-since", "its rules were changed since; change them on the page of its rules")

// restoreRules gives a namespace the rules back that it had before a job. ErrUnchanged if it has them already. A namespace that the job
// made stays, without rules. Keep is called before anything is written; if it is nil, nothing is.
func (b *Board) restoreRules(ctx context.Context, kept *keptRules, keep func(now, next *stele.Namespace) error) (key stele.NamespaceKey, err error) {
	before, err := document.DecodeNamespace(b.o.Schemes, kept.Before)
	if err != nil {
		return key, refuse(stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, "rules", err)
	}
	key = before.Key()
	judge := func(ns *stele.Namespace) error {
		switch rulesDigest(ns) {
		case rulesDigest(before):
			return registrar.ErrUnchanged
		case kept.After:
			return nil
		}
		return &stele.Error{Op: "undo", Kind: stele.Conflict, Err: errRulesChanged}
	}
	now, err := b.o.Registrar.Namespace(ctx, key)
	if err == nil {
		err = judge(now)
	}
	if err != nil || keep == nil {
		return key, err
	}
	if err := keep(now, before); err != nil {
		return key, err
	}
	_, err = b.o.Registrar.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		if err := judge(ns); err != nil {
			return err
		}
		ns.Rules = before.Rules
		return nil
	})
	return key, err
}

// eachRules calls found with the rules that a job changed, in order.
func (b *Board) eachRules(ctx context.Context, job string, found func(*keptRules) error) error {
	for c, err := range b.o.Registrar.WorkList(asServer(ctx), ruleCells+job, "") {
		var kept keptRules
		if err == nil {
			err = decode(c.Name, c.Value, &kept)
		}
		if err == nil {
			err = found(&kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// previewRules counts the namespaces whose rules an undo restores.
func (b *Board) previewRules(ctx context.Context, j *Job, p *Preview) error {
	return b.eachRules(ctx, j.ID, func(kept *keptRules) error {
		switch _, err := b.restoreRules(ctx, kept, nil); {
		case err == nil:
			p.Rules++
		case errors.Is(err, registrar.ErrUnchanged):
		default:
			p.RulesLeft++
		}
		return ctx.Err()
	})
}

// revertRules restores the rules that a job changed, and tells of each namespace, also of those that an earlier attempt has restored.
func (w *working) revertRules(ctx context.Context, of string, tell func(Outcome) error) error {
	n := 0
	return w.Board.eachRules(ctx, of, func(kept *keptRules) error {
		if err := w.holds(); err != nil {
			return err
		}
		n++
		key, err := w.Board.restoreRules(ctx, kept, func(now, next *stele.Namespace) error { return w.keepRules(ctx, n, now, next) })
		o := Outcome{ID: key.String(), Space: true, Kind: Changed}
		switch kind := stele.KindOf(err); {
		case errors.Is(err, registrar.ErrUnchanged):
			// An earlier attempt may have restored it, and died before it was told.
			if value, _, err := w.rulesKept(ctx, ruleCell(w.job.ID, n)); err != nil || value == nil {
				return err
			}
		case err != nil && (kind == stele.Unavailable || kind == stele.Internal):
			return err
		case err != nil:
			o.Kind, o.Problems = Refused, []Problem{problemOf("", err)}
		}
		return tell(o)
	})
}
