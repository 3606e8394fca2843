package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Heirs asks the registries that take over namespaces. The principal is in the context.
type Heirs interface {
	// Check asks the heir of a namespace how far it is.
	Check(ctx context.Context, key stele.NamespaceKey) (apijson.HeirCheck, error)

	// Forward redirects requests for the names of a namespace to its heir: if the heir answers for them, or, with sure, without asking it.
	Forward(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error)

	// Cancel ends a hand-over: of a namespace that was sealed only with sure, and if the heir does not say that it gives the names.
	Cancel(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error)
}

func (h *Handler) handOverOperations() []operation {
	const group = "Handing namespaces over"
	page := []answer{{status: 200, about: "A page of the list.", value: apijson.HandOverPage{}}}
	return []operation{{
		name: "listHandOvers", method: http.MethodGet, path: "handover", group: group,
		summary: "List namespaces that are handed over or were taken over",
		asks:    administrator, scope: auth.ScopeRead,
		query:   []parameter{limitParameter, cursorParameter},
		answers: page,
		serve:   func(c *call) error { return h.listHandOvers(c, stele.NamespaceKey{}) },
	}, {
		name: "getHandOver", method: http.MethodGet, path: "handover/{prefix}", group: group, tail: prefixInPath,
		summary: "Show how far a namespace is handed over, from which registry it was taken over, and its heirs",
		about: "With all namespaces below it, and with the one above it that names its heirs; one of which there is nothing to say is not in the list, whether it exists or not. It is public: readers see where their requests go, and two registries see how far the other one is. " +
			"Administrators also see which principals did it.",
		asks: anyone, scope: anyScope,
		query:   []parameter{limitParameter, cursorParameter},
		answers: page,
		serve: func(c *call) error {
			key, err := c.prefix()
			if err != nil {
				return err
			}
			return h.listHandOvers(c, key)
		},
	}, {
		name: "changeHandOver", method: http.MethodPost, path: "handover/{prefix}", group: group, tail: prefixInPath,
		summary: "Go a step further with handing a namespace over",
		about: "Namespaces below it go with it. A seal ends minting and all changes here, on all servers, before the answer is sent; planSeal says what it concerns. It is refused with 409 as long as records elsewhere have aliases there, unless their namespaces are offered to the same heir. " +
			"Forward first asks the heir whether it has adopted everything for writing and answers for a sample of names, and is refused with 409 and a reason if it does not; checkHeir asks the same. " +
			"Cancelling a seal needs iKnow: if the heir has adopted it, two registries make the same names. The heir is asked, and it is refused with 409 if the heir says so; an heir that does not answer is the caller's to know of. " +
			"Ended needs iKnow, too. It is about the other side: this registry is the heir of one that fell silent, which is asked once more, and it is refused with 409 if that answers. " +
			"The templates of the namespaces are shut then, since the other registry may have made names after its last bundle: skip their counters ahead.",
		asks: administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.HandOverStep{}, example: `{"do":"offer","heir":"heir.example.org/.log","address":"https://heir.example.org/"}`},
		answers: []answer{{status: 200, about: "How far it is now.", value: apijson.HandOverResult{}}},
		fails:   []int{404, 409},
		serve:   h.changeHandOver,
	}, {
		name: "checkHeir", method: http.MethodPost, path: "heir/{prefix}", group: group, tail: prefixInPath,
		summary: "Ask the heir of a namespace how far it is",
		about:   "The server asks at the address that was offered: public addresses, and those of its setting handover-allow. Nothing is written.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "What the heir says, and what is missing.", value: apijson.HeirCheck{}}},
		fails:   []int{404, 409},
		serve:   h.checkHeir,
	}, {
		name: "planSeal", method: http.MethodPost, path: "sealplan/{prefix}", group: group, tail: prefixInPath,
		summary: "Say what a seal of a namespace would do",
		about:   "Nothing is written. All records are read, since an alias can belong to any of them.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "How many records were read, and at the end the plan.", value: apijson.SealPlan{}, media: apijson.Lines, lines: true}},
		fails:   []int{404, 409},
		serve:   h.planSeal,
	}}
}

// listHandOvers lists the hand-overs at and below a key; all with the zero key. A cursor is the scheme and the prefix of the last one.
func (h *Handler) listHandOvers(c *call, key stele.NamespaceKey) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	list, err := h.o.Registrar.HandOvers(c.ctx, key)
	if err != nil {
		return err
	}
	own, err := h.o.Registrar.LogOrigin(c.ctx)
	if err != nil {
		return err
	}
	scheme, prefix, _ := strings.Cut(after, " ")
	page := newPage(c)
	for _, ns := range list {
		if after != "" && cmp.Or(cmp.Compare(ns.Scheme, scheme), cmp.Compare(ns.Prefix, prefix)) <= 0 {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(ns.Scheme + " " + ns.Prefix)
		if err := page.addValue(apijson.HandOverOf(ns, own.Origin)); err != nil {
			return err
		}
	}
	return page.end()
}

// changeHandOver goes a step further with a hand-over.
func (h *Handler) changeHandOver(c *call) error {
	var want apijson.HandOverStep
	if err := c.decode(&want); err != nil {
		return err
	}
	key, err := c.prefix()
	if err != nil {
		return err
	}
	if want.Do != "offer" && (want.Heir != "" || want.Address != "") {
		return invalidf("hand-over.heir-without-offer", "heir and address belong to an offer; leave them out")
	}
	var list []*stele.Namespace
	switch want.Do {
	case "offer":
		list, err = h.o.Registrar.OfferNamespace(c.ctx, key, want.Heir, want.Address)
	case "seal":
		ctx, stop := c.running()
		defer stop()
		c.extend(heirTime)
		list, err = h.o.Registrar.SealNamespace(ctx, key)
	case "forward":
		ctx, stop := c.running()
		defer stop()
		c.extend(heirTime)
		list, err = h.o.Heirs.Forward(ctx, key, want.IKnow)
	case "cancel":
		ctx, stop := c.running()
		defer stop()
		c.extend(heirTime)
		list, err = h.o.Heirs.Cancel(ctx, key, want.IKnow)
	case "ended":
		ctx, stop := c.running()
		defer stop()
		c.extend(heirTime)
		list, err = h.o.Registrar.EndGiver(ctx, key, want.IKnow, h.o.Givers.ConfirmEnd)
	default:
		err = invalidf("hand-over.step-unknown", `"{step}" is not a step of a hand-over; there are offer, seal, forward, cancel and ended`, want.Do)
	}
	if err != nil {
		return err
	}
	own, err := h.o.Registrar.LogOrigin(c.ctx)
	if err != nil {
		return err
	}
	result := apijson.HandOverResult{Namespaces: []apijson.NamespaceHandOver{}}
	for _, ns := range list {
		result.Namespaces = append(result.Namespaces, apijson.HandOverOf(ns, own.Origin))
	}
	return c.reply(http.StatusOK, result)
}

// checkHeir asks the heir of a namespace.
func (h *Handler) checkHeir(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	ctx, stop := c.running()
	defer stop()
	c.extend(heirTime)
	a, err := h.o.Heirs.Check(ctx, key)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, a)
}

// planSeal says what a seal would do.
func (h *Handler) planSeal(c *call) error {
	key, err := c.prefix()
	if err != nil {
		return err
	}
	if _, err := h.o.Registrar.Namespace(c.ctx, key); err != nil {
		return err
	}
	if !h.duties.verify.TryLock() {
		return busy(c, "the registry is being checked already")
	}
	defer h.duties.verify.Unlock()
	_, stop := c.running()
	defer stop()
	// What is refused is refused before the answer begins.
	if err := h.o.Registrar.MaySeal(c.ctx, key); err != nil {
		return err
	}
	var plan *registrar.SealPlan
	out := c.stream(apijson.Lines)
	err = c.attend(out, func(ctx context.Context, tell func(line any)) (err error) {
		plan, err = h.o.Registrar.PlanSeal(ctx, key, func(n int) {
			if n%readEvery == 0 {
				tell(apijson.SealPlan{Read: n})
			}
		})
		return err
	})
	if err != nil {
		return err
	}
	if err := out.line(plan.Document()); err != nil {
		return err
	}
	return out.flush()
}
