package desk

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/web/deskpage"
)

// tokenDays are the lives of tokens that the form offers, in days; never is another, for
// administrators.
var tokenDays = []int{7, 30, 90, 365}

const never = "never"

// newToken shows the form that makes a token.
func (c *call) newToken() error {
	if err := c.fresh(); err != nil {
		return err
	}
	return c.show(http.StatusOK, "token", c.tokenForm([]string{string(auth.ScopeRead)}, "90"))
}

// tokenForm returns the form with what is chosen in it.
func (c *call) tokenForm(scopes []string, life string) *deskpage.NewToken {
	v := &deskpage.NewToken{Frame: c.frame("token.title", "account"), Label: deskpage.Field{ID: "label", Name: "label"},
		Namespaces: deskpage.Field{ID: "namespaces", Name: "namespaces"}, Scope: deskpage.Field{ID: "scope", Name: "scope"}, Expires: deskpage.Field{ID: "expires", Name: "expires"}}
	for _, s := range auth.Scopes() {
		if (s == auth.ScopeBackup || s == auth.ScopeMetrics) && !c.who.Admin {
			continue // these are for the whole registry
		}
		v.Scopes = append(v.Scopes, deskpage.Option{Value: string(s), Text: c.language.Text("scope." + string(s)), Chosen: slices.Contains(scopes, string(s))})
	}
	for _, days := range tokenDays {
		text := strconv.Itoa(days)
		v.Lives = append(v.Lives, deskpage.Option{Value: text, Text: c.language.Text("token.days", "count", days), Chosen: text == life})
	}
	if c.who.Admin {
		v.Lives = append(v.Lives, deskpage.Option{Value: never, Text: c.language.Text("account.never"), Chosen: life == never})
	}
	v.Same = c.sameToken("laptop", []string{"read"}, nil, "90")
	return v
}

// sameToken returns the command and the request that make such a token.
func (c *call) sameToken(label string, scopes, namespaces []string, life string) []deskpage.Same {
	expires := life
	if life != never {
		expires += "d"
	}
	command := "stele token create " + shellWord(c.who.Name) + " --label " + shellWord(label) + " --scope " + strings.Join(scopes, ",") + " --expires " + expires
	body := map[string]any{"label": label, "scopes": scopes}
	if len(namespaces) > 0 {
		command += " --namespace " + shellWord(strings.Join(namespaces, ","))
		body["namespaces"] = namespaces
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	return []deskpage.Same{{Label: c.language.Text("same.command"), Text: command},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" -H 'Content-Type: application/json' -d ` + shellWord(string(text)) + " " + c.base() + "/api/v1/tokens"}}
}

// makeToken makes a token of the user, and shows it once.
func (c *call) makeToken() error {
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	scopes, life := form["scope"], form.Get("expires")
	v := c.tokenForm(scopes, life)
	v.Label.Value, v.Namespaces.Value = strings.TrimSpace(form.Get("label")), form.Get("namespaces")
	want := auth.TokenRequest{User: c.who.Name, Label: v.Label.Value, Namespaces: strings.Fields(v.Namespaces.Value)}
	wrong := func(f *deskpage.Field, text string) {
		f.Problem = text
		v.Problems = append(v.Problems, deskpage.Problem{Field: f.ID, Text: text})
	}
	if want.Label == "" {
		wrong(&v.Label, c.language.Text("token.no-label"))
	}
	if len(scopes) == 0 {
		wrong(&v.Scope, c.language.Text("token.no-scope"))
	}
	for _, s := range scopes {
		want.Scopes = append(want.Scopes, auth.Scope(s))
	}
	if days, err := strconv.Atoi(life); err == nil && days > 0 && days <= 3650 {
		want.Expires = c.h.o.Now().Add(time.Duration(days) * 24 * time.Hour)
	} else if want.Never = life == never; !want.Never {
		wrong(&v.Expires, c.language.Text("token.no-life"))
	}
	if len(v.Problems) > 0 {
		return c.show(http.StatusUnprocessableEntity, "token", v)
	}
	credential, t, err := c.h.o.Registrar.CreateToken(c.ctx, want)
	if err != nil {
		return c.refuseToken(v, err, wrong)
	}
	made := &deskpage.MadeToken{Frame: c.frame("token.made-title", "account"), Credential: credential, Label: t.Label, Expires: t.Expires, Never: t.Expires.IsZero()}
	made.Same = []deskpage.Same{{Label: c.language.Text("token.try"), Text: "export STELE_SERVER=" + shellWord(c.base()) + "\nread -rs STELE_TOKEN && export STELE_TOKEN\nstele token ls"}}
	return c.show(http.StatusOK, "tokenmade", made)
}

// refuseToken shows the form again with what the registrar says against it.
func (c *call) refuseToken(v *deskpage.NewToken, err error, wrong func(*deskpage.Field, string)) error {
	if auth.IsOldProof(err) {
		return err
	}
	switch stele.KindOf(err) {
	case stele.Invalid, stele.NotFound, stele.Forbidden, stele.Conflict, stele.Exhausted:
	default:
		return err
	}
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok {
		problems = stele.Problems{{Path: "namespaces", Err: reason(err)}}
		if stele.KindOf(err) == stele.Forbidden {
			problems[0].Path = "expires"
		}
	}
	for _, p := range problems {
		text := c.language.Problem(p.Err)
		switch name, _, _ := strings.Cut(p.Path, "["); name {
		case "label":
			wrong(&v.Label, text)
		case "scopes":
			wrong(&v.Scope, text)
		case "expires":
			wrong(&v.Expires, text)
		default:
			wrong(&v.Namespaces, text)
		}
	}
	return c.show(http.StatusUnprocessableEntity, "token", v)
}
