package remote

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// LinkChecks returns how the targets of a namespace are checked.
func (r *Registry) LinkChecks(ctx context.Context, key stele.NamespaceKey) (registrar.LinkChecks, error) {
	return r.linkChecks(ctx, "show link checks", key, &ask{method: http.MethodGet, path: pathOf("linkchecks", key.String()), again: true})
}

// SetLinkChecks changes how the targets of a namespace are checked. Another change at the same time may be lost.
func (r *Registry) SetLinkChecks(ctx context.Context, key stele.NamespaceKey, change func(*registrar.LinkChecks)) (registrar.LinkChecks, error) {
	l, err := r.LinkChecks(ctx, key)
	if err != nil && !registrar.AreChecksDamaged(err) {
		return l, err
	}
	change(&l)
	d := apijson.LinkChecks{On: l.On, Quota: l.Quota, FallBack: l.FallBack}
	for _, o := range l.Own {
		d.Own = append(d.Own, apijson.OwnHost{Host: o.Host, Gap: o.Gap.Milliseconds()})
	}
	for _, p := range l.Pauses {
		d.Pauses = append(d.Pauses, apijson.HostPause{Host: p.Host, Until: p.Until})
	}
	const op = "set link checks"
	return r.linkChecks(ctx, op, key, &ask{method: http.MethodPut, path: pathOf("linkchecks", key.String()), document: &d, again: true})
}

func (r *Registry) linkChecks(ctx context.Context, op string, key stele.NamespaceKey, q *ask) (l registrar.LinkChecks, err error) {
	var d apijson.LinkChecks
	if err := r.fetch(ctx, op, q, &d); err != nil {
		return l, err
	}
	l = registrar.LinkChecks{Scheme: key.Scheme, Namespace: key.Prefix, On: d.On, Quota: d.Quota, FallBack: d.FallBack, By: d.By, Changed: d.Changed}
	for _, o := range d.Own {
		l.Own = append(l.Own, registrar.OwnHost{Host: o.Host, Gap: time.Duration(o.Gap) * time.Millisecond})
	}
	for _, p := range d.Pauses {
		l.Pauses = append(l.Pauses, registrar.HostPause{Host: p.Host, Until: p.Until})
	}
	return l, nil
}

// LinkFindings yields what is told about targets of names that begin with a prefix.
func (r *Registry) LinkFindings(ctx context.Context, key stele.NamespaceKey) iter.Seq2[apijson.LinkFinding, error] {
	const op = "list link findings"
	return func(yield func(apijson.LinkFinding, error) bool) {
		q := &ask{method: http.MethodGet, path: "linkfindings", again: true, query: url.Values{"prefix": {key.String()}, "limit": {strconv.Itoa(pageSize)}}}
		for item, err := range r.items(ctx, q) {
			var f apijson.LinkFinding
			if err != nil {
				err = under(op, stele.ID{}, err)
			} else if bad := json.Unmarshal(item, &f); bad != nil {
				err = unread(bad)
			}
			f.Scheme = key.Scheme
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// LinkHosts returns what is told about whole hosts.
func (r *Registry) LinkHosts(ctx context.Context, key stele.NamespaceKey) ([]apijson.LinkHost, error) {
	var d apijson.LinkHosts
	if err := r.fetch(ctx, "list link hosts", &ask{method: http.MethodGet, path: "linkhosts", again: true, query: url.Values{"prefix": {key.String()}}}, &d); err != nil {
		return nil, err
	}
	return d.Items, nil
}

// CheckLinks returns what is known of names, and has those checked that were not since a time.
func (r *Registry) CheckLinks(ctx context.Context, ids []stele.ID, since time.Time) ([]apijson.LinkFinding, int, error) {
	const op = "check links"
	want := apijson.LinkCheck{Since: since}
	for _, id := range ids {
		want.IDs = append(want.IDs, id.String())
	}
	var d apijson.LinkChecked
	if err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: "checklinks", document: &want, again: true}, &d); err != nil {
		return nil, 0, err
	}
	return d.Items, d.Waiting, nil
}

// LookAtLink says what a person saw at a target.
func (r *Registry) LookAtLink(ctx context.Context, id stele.ID, target int, works bool, answer string) error {
	const op = "look at link"
	_, err := r.call(ctx, &ask{method: http.MethodPost, path: pathOf("looked", id.String()), document: &apijson.LinkLook{Target: target, Works: works, Answer: answer}, again: true})
	return under(op, id, err)
}
