package recordtest

import (
	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

// AnyTarget has anything in every field, valid or not.
var AnyTarget = rapid.Custom(func(t *rapid.T) stele.Target {
	return stele.Target{
		Service:    stele.Service(BytesText.Draw(t, "service")),
		URL:        BytesText.Draw(t, "url"),
		Type:       BytesText.Draw(t, "type"),
		Language:   BytesText.Draw(t, "language"),
		Order:      rapid.Uint16().Draw(t, "order"),
		Preference: rapid.Uint16().Draw(t, "preference"),
		TTL:        rapid.Uint32().Draw(t, "ttl"),
		Status:     rapid.Int().Draw(t, "status"),
		Partial:    rapid.Bool().Draw(t, "partial"),
	}
})

// AnyRule has anything in every field, valid or not.
var AnyRule = rapid.Custom(func(t *rapid.T) stele.Rule {
	return stele.Rule{
		Pattern: BytesText.Draw(t, "pattern"),
		Fold:    rapid.Bool().Draw(t, "fold"),
		Title:   BytesText.Draw(t, "title"),
		Reason:  BytesText.Draw(t, "reason"),
		Targets: Few(AnyTarget).Draw(t, "targets"),
		Examples: Few(rapid.Custom(func(t *rapid.T) stele.RuleExample {
			return stele.RuleExample{Name: BytesText.Draw(t, "name"), Type: BytesText.Draw(t, "type"), Want: BytesText.Draw(t, "want")}
		})).Draw(t, "examples"),
	}
})

// GoodRule is a rule that a namespace may have, as far as can be told without running its
// examples.
var GoodRule = rapid.Custom(func(t *rapid.T) stele.Rule {
	targets := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stele.Target {
		x := GoodTarget.Draw(t, "target")
		x.Partial = false
		if x.URL = "https://example.org/{n}"; stele.IsEmptyStatus(x.Status) {
			x.URL = ""
		}
		return x
	}), 1, 3).Draw(t, "targets")
	return stele.Rule{
		Pattern: rapid.SampledFrom([]string{"a{n:digit}", "b{n:any}", `{n=x|"y|z}`}).Draw(t, "pattern"),
		Fold:    rapid.Bool().Draw(t, "fold"),
		Title:   Prose.Draw(t, "title"),
		Reason:  Prose.Draw(t, "reason"),
		Targets: targets,
		Examples: []stele.RuleExample{
			{Name: "ibi:xa1", Type: rapid.SampledFrom([]string{"", "text/html", "*/*"}).Draw(t, "type"), Want: rapid.SampledFrom([]string{"410", "https://example.org/1"}).Draw(t, "want")},
			{Name: "ibi:x"},
		},
	}
})
