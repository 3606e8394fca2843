package remote

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
)

// JudgeReplacement finds out what a replacement would do; see [bulk.Replacer.Judge].
func (r *Registry) JudgeReplacement(ctx context.Context, p bulk.Replacement, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error) {
	return r.replace(ctx, apijson.Replacement{From: p.From, To: p.To, Namespace: p.Namespace}, told)
}

// Replace gives targets of many records another beginning; see [bulk.Replacer.Run]. It does not send
// the request again when the answer is cut off: told would get the same records twice.
func (r *Registry) Replace(ctx context.Context, p bulk.Replacement, expect int, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error) {
	return r.replace(ctx, apijson.Replacement{From: p.From, To: p.To, Namespace: p.Namespace, Expect: &expect}, told)
}

// AcceptMoved gives targets the addresses to which they moved; without a digest it tells what that would do. See [bulk.Mover].
func (r *Registry) AcceptMoved(ctx context.Context, key stele.NamespaceKey, host, digest string, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error) {
	return r.change(ctx, "accept addresses", "acceptmoved", apijson.LinkAcceptance{Prefix: key.String(), Host: host, Digest: digest}, told)
}

func (r *Registry) replace(ctx context.Context, want apijson.Replacement, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error) {
	return r.change(ctx, "replace", "replace", want, told)
}

// change has the server change targets of many records.
func (r *Registry) change(ctx context.Context, op, path string, want any, told func(bulk.Replaced) error) (counts bulk.ReplaceCounts, err error) {
	s, err := r.open(ctx, &ask{method: http.MethodPost, path: path, document: want}, nil, streamStill)
	if err != nil {
		return counts, under(op, stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return counts, err
		}
		var line apijson.Replaced
		if err := json.Unmarshal(text, &line); err != nil {
			return counts, unread(err)
		}
		switch {
		case line.Judged > 0:
			continue
		case line.ID == "" && line.Problem != nil:
			return counts, under(op, stele.ID{}, r.problem(line.Problem, line.Problem.Status))
		case line.Done:
			return bulk.ReplaceCounts{Import: line.Import, Changed: line.Changed, Refused: line.Refused, Digest: line.Digest}, nil
		}
		one := bulk.Replaced{Title: apijson.Legible(line.Title), Old: apijson.Legible(line.Old), New: apijson.Legible(line.New)}
		if one.ID, err = r.o.Schemes.Parse(line.ID); err != nil {
			return counts, unread(stele.Messagef("api.answer-not-an-identifier", `"{id}" is not an identifier`, line.ID))
		}
		switch {
		case line.Problem != nil:
			one.Err = under("import", stele.ID{}, r.problem(line.Problem, line.Problem.Status))
		case line.Status == apijson.StatusRefused:
			one.Err = refuse("import", stele.ID{}, stele.Invalid, "api.reason-missing", "the server does not say why")
		}
		if err := told(one); err != nil {
			return counts, err
		}
	}
	return counts, refuse(op, stele.ID{}, stele.Unavailable, "import.answer-cut-off", "the answer was cut off; give the same command again to go on")
}
