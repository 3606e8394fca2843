package api

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// LinkChecker checks where names lead. It judges what the caller in the context may do.
type LinkChecker interface {
	// Findings yields what is told about targets of names that begin with a prefix, after a place: a name, a tab,
	// and the number of a target.
	Findings(ctx context.Context, prefix stele.NamespaceKey, after string) iter.Seq2[apijson.LinkFinding, error]

	// FindingsOf yields those that a filter describes.
	FindingsOf(ctx context.Context, prefix stele.NamespaceKey, only apijson.LinkFilter, after string) iter.Seq2[apijson.LinkFinding, error]

	// Overview counts findings, at most so many, 0 for the usual limit, and has the first ones of each kind.
	Overview(ctx context.Context, prefix stele.NamespaceKey, first, most int) (*apijson.LinkOverview, error)

	// Hosts returns what is told about whole hosts of these names.
	Hosts(ctx context.Context, prefix stele.NamespaceKey) ([]apijson.LinkHost, error)

	// Check returns what is known of names, and has those checked that were not since a time.
	Check(ctx context.Context, ids []stele.ID, since time.Time) (list []apijson.LinkFinding, waiting int, err error)

	// Look keeps what a person saw who looked at a target; answer is that of the finding.
	Look(ctx context.Context, id stele.ID, target int, works bool, answer string) error
}

// maxLinkIDs is how many names one request asks about.
const maxLinkIDs = 500

func (h *Handler) linkOperations() []operation {
	const group = "Link checks"
	settings := answer{status: 200, about: "The settings as they are now.", value: apijson.LinkChecks{}}
	return []operation{{
		name: "getLinkChecks", method: http.MethodGet, path: "linkchecks/{prefix}", group: group, tail: prefixInPath,
		summary: "Show whether and how the targets of a namespace are checked",
		asks:    reader, scope: auth.ScopeRead,
		answers: []answer{settings},
		fails:   []int{404},
		serve: func(c *call) error {
			key, err := c.prefix()
			if err != nil {
				return err
			}
			l, err := h.o.Registrar.LinkChecks(c.ctx, key)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, linkSettings(l))
		},
	}, {
		name: "putLinkChecks", method: http.MethodPut, path: "linkchecks/{prefix}", group: group, tail: prefixInPath,
		summary: "Switch the checks of a namespace on or off, and set their pace",
		about:   "They are off until an owner switches them on.",
		asks:    owner, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.LinkChecks{}, example: `{"on":true,"quota":10000,"own":[{"host":"data.example.org","gap":500}]}`},
		answers: []answer{settings},
		fails:   []int{404, 409},
		serve:   h.putLinkChecks,
	}, {
		name: "listLinkFindings", method: http.MethodGet, path: "linkfindings", group: group,
		summary: "List targets that do not work as they should",
		about:   "Broken, gone, moved, failing, blocked and unsure ones, and those whose content is another one, by their names.",
		asks:    reader, scope: auth.ScopeRead,
		query: []parameter{{name: "prefix", required: true, about: "What the names begin with", example: "ark:12345"},
			{name: "look", kind: flagKind, usual: "false", about: "only targets that have been blocked for half a year, at which a person should look"}, limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.LinkFindingPage{}}},
		serve:   h.listLinkFindings,
	}, {
		name: "listLinkHosts", method: http.MethodGet, path: "linkhosts", group: group,
		summary: "List hosts that do not answer, or of which only a sample is asked",
		asks:    reader, scope: auth.ScopeRead,
		query:   []parameter{{name: "prefix", required: true, about: "What the names begin with that lead there", example: "ark:12345"}},
		answers: []answer{{status: 200, about: "The hosts.", value: apijson.LinkHosts{}}},
		serve: func(c *call) error {
			key, err := h.o.Registrar.ParsePrefix(c.text("prefix"))
			if err != nil {
				return amiss(c, "prefix", err)
			}
			list, err := h.o.Links.Hosts(c.ctx, key)
			if err != nil {
				return err
			}
			return c.reply(http.StatusOK, apijson.LinkHosts{Items: append([]apijson.LinkHost{}, list...)})
		},
	}, {
		name: "checkLinks", method: http.MethodPost, path: "checklinks", group: group,
		summary: "Check where names lead",
		about:   "The answer has what is known by now; the rest is checked in the background, as slowly as politeness asks. It also works where the checks are off.",
		asks:    editor, scope: auth.ScopeWrite,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.LinkCheck{}, example: `{"ids":["ark:12345/x1"]}`},
		answers: []answer{{status: 200, about: "What is known.", value: apijson.LinkChecked{}}},
		fails:   []int{404},
		serve:   h.checkLinks,
	}, {
		name: "lookAtLink", method: http.MethodPost, path: "looked/{id}", group: group, tail: identifier,
		summary: "Say what you saw at a target",
		about:   "That it works is remembered for the answer that you send, which findings have; another answer is told again. If the target or the answer of its server is another one by now, nothing is kept: look again.",
		asks:    editor, scope: auth.ScopeWrite,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.LinkLook{}, example: `{"target":0,"works":true,"answer":"5f0c3a91d2f3e4855a6b7c8d9e0f1a2b"}`},
		answers: []answer{{status: 204, about: "It is kept."}},
		fails:   []int{404, 409},
		serve: func(c *call) error {
			id, err := c.id()
			if err != nil {
				return err
			}
			var want apijson.LinkLook
			if err := c.decode(&want); err != nil {
				return err
			}
			if err := h.o.Links.Look(c.ctx, id, want.Target, want.Works, want.Answer); err != nil {
				return err
			}
			c.replyEmpty(http.StatusNoContent)
			return nil
		},
	}}
}

// linkSettings returns settings as they are shown.
func linkSettings(l registrar.LinkChecks) apijson.LinkChecks {
	d := apijson.LinkChecks{On: l.On, Quota: l.Quota, FallBack: l.FallBack, By: l.By, Changed: l.Changed}
	for _, o := range l.Own {
		d.Own = append(d.Own, apijson.OwnHost{Host: o.Host, Gap: o.Gap.Milliseconds()})
	}
	for _, p := range l.Pauses {
		d.Pauses = append(d.Pauses, apijson.HostPause{Host: p.Host, Until: p.Until})
	}
	return d
}

func (h *Handler) putLinkChecks(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	var want apijson.LinkChecks
	if err := c.decode(&want); err != nil {
		return err
	}
	l, err := h.o.Registrar.SetLinkChecks(c.ctx, key, func(l *registrar.LinkChecks) {
		l.On, l.Quota, l.FallBack, l.Own, l.Pauses = want.On, want.Quota, want.FallBack, nil, nil
		for _, o := range want.Own {
			l.Own = append(l.Own, registrar.OwnHost{Host: o.Host, Gap: time.Duration(min(max(o.Gap, 0), 1<<40)) * time.Millisecond})
		}
		for _, p := range want.Pauses {
			l.Pauses = append(l.Pauses, registrar.HostPause{Host: p.Host, Until: p.Until.UTC()})
		}
	})
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, linkSettings(l))
}

func (h *Handler) listLinkFindings(c *call) error {
	key, err := h.o.Registrar.ParsePrefix(c.text("prefix"))
	if err != nil {
		return amiss(c, "prefix", err)
	}
	after, err := c.after()
	if err != nil {
		return err
	}
	if at := strings.LastIndexByte(after, ' '); at >= 0 { // a cursor has no tabs
		after = after[:at] + "\t" + after[at+1:]
	}
	page := newPage(c)
	for f, err := range h.o.Links.Findings(c.ctx, key, after) {
		if err != nil {
			return err
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(f.ID + " " + strconv.Itoa(f.Target))
		if c.flag("look") && !f.Look {
			continue
		}
		if err := page.addValue(f); err != nil {
			return err
		}
	}
	return page.end()
}

func (h *Handler) checkLinks(c *call) error {
	var want apijson.LinkCheck
	if err := c.decode(&want); err != nil {
		return err
	}
	if len(want.IDs) > maxLinkIDs {
		return &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Path: "ids", Err: stele.Messagef("links.too-many-names", "there are {count} names; {most} are the most at once", len(want.IDs), maxLinkIDs)}}}
	}
	var ids []stele.ID
	for i, text := range want.IDs {
		id, err := h.o.Schemes.Parse(text)
		if err != nil {
			return amiss(c, stele.ItemPath("ids", i), err)
		}
		ids = append(ids, id)
	}
	c.charge(len(ids))
	list, waiting, err := h.o.Links.Check(c.ctx, ids, want.Since)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, apijson.LinkChecked{Items: append([]apijson.LinkFinding{}, list...), Waiting: waiting})
}
