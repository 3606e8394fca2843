package desk

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// Who may use a form. Those that follow in the order may, too.
const (
	forAll    = iota // no session is needed
	forUsers         // about the user's own things
	forReader        // of the namespace
	forEditor
	forOwner
	forAdmin
)

// formRoles says of each form of the desk who may use it, and what it sends at least. A form that needs a role and a record is about
// ark:12345/x5a.
var formRoles = map[string]struct {
	least int
	form  string
}{
	"sign-in/demo":                {forAll, ""},
	"sign-in/passkey":             {forAll, ""},
	"sign-in/password":            {forAll, ""},
	"sign-in/proxy":               {forAll, ""},
	"passkey/options":             {forAll, ""},
	"link/{credential}":           {forAll, ""},
	"link/{credential}/issuer":    {forAll, ""},
	"language":                    {forAll, ""},
	"confirm/{user}/{credential}": {forAll, ""},
	"digest/{user}/{credential}":  {forAll, ""},

	"sign-out":                {forUsers, ""},
	"prove/demo":              {forUsers, ""},
	"prove/password":          {forUsers, ""},
	"prove/passkey":           {forUsers, ""},
	"account/end":             {forUsers, ""},
	"account/end-others":      {forUsers, ""},
	"account/revoke":          {forUsers, ""},
	"account/issuer":          {forUsers, ""},
	"account/issuer/leave":    {forUsers, ""},
	"account/password":        {forUsers, ""},
	"account/password/remove": {forUsers, ""},
	"account/passkeys":        {forUsers, ""},
	"account/passkeys/rename": {forUsers, ""},
	"account/passkeys/remove": {forUsers, ""},
	"account/tokens":          {forUsers, ""},
	"settings":                {forUsers, ""},
	"settings/address":        {forUsers, ""},
	"settings/address/remove": {forUsers, ""},
	"settings/digest":         {forUsers, ""},
	"many":                    {forUsers, ""}, // the rows are judged by the rights of the user
	"many/{id}":               {forUsers, ""}, // uploads and jobs are seen by their users only
	"jobs/{id}/cancel":        {forUsers, ""},
	"jobs/{id}/undo":          {forUsers, ""},
	"replace":                 {forUsers, ""}, // records that the user may not change are refused one by one

	"links/look":       {forEditor, "id=ark:12345/x5a&do=check"},
	"new":              {forEditor, "do=save&namespace=ark:12345/x5&target.0.url=https://example.org/1"},
	"record":           {forEditor, "id=ark:12345/x5a&version=1&do=save&target.0.url=https://example.org/other"},
	"revert":           {forEditor, "id=ark:12345/x5a&version=2&to=1"},
	"withdraw":         {forEditor, "id=ark:12345/x5a&version=1&reason=test&do=withdraw"},
	"reinstate":        {forEditor, "id=ark:12345/x5a&version=1"},
	"links/accept":     {forEditor, "namespace=ark:12345/x5&host=old.example.org"},
	"disavow":          {forOwner, "id=ark:12345/x5a&version=2&number=1&reason=test"},
	"proposal/approve": {forOwner, "id=PROPOSAL"},
	"proposal/decline": {forOwner, "id=PROPOSAL&reason=test"},

	"namespace/edit":    {forOwner, "namespace=ark:12345/x5&title=Other&version=1&do=save"},
	"namespace/new":     {forOwner, "scheme=ark&prefix=ark:12345/x5z&owner=sam&do=save"}, // below a namespace of the user
	"links":             {forOwner, "namespace=ark:12345/x5&do=on"},
	"usage":             {forOwner, "namespace=ark:12345/x5&do=save"},
	"zone":              {forOwner, "namespace=ark:12345/x5&do=save"},
	"zone/check":        {forOwner, "namespace=ark:12345/x5"},
	"zone/keys":         {forOwner, "namespace=ark:12345/x5&do=roll"},
	"rules/add":         {forOwner, "namespace=ark:12345/x5&version=1"},
	"rules/remove":      {forOwner, "namespace=ark:12345/x5&version=1&number=1"},
	"keeping/add":       {forOwner, "namespace=ark:12345/x5&version=1&registry=heir.example.org/.log&address=https://heir.example.org/&days=180"},
	"keeping/remove":    {forOwner, "namespace=ark:12345/x5&version=1&registry=heir.example.org/.log"},
	"members/give":      {forOwner, "namespace=ark:12345/x5&kind=user&to=sam&role=owner"},
	"members/take":      {forOwner, "namespace=ark:12345/x5&to=user:olga"},
	"members/hand-over": {forOwner, "namespace=ark:12345/x5&to=sam"},
	"members/leave":     {forReader, "namespace=ark:12345/x5"},

	"invite":          {forAdmin, "name=new&namespace=ark:12345/x5&role=editor"},
	"tsig":            {forAdmin, "name=key.example.org"},
	"tsig/retire":     {forAdmin, "name=key.example.org"},
	"person":          {forAdmin, "name=olga&do=save&admin=yes"},
	"person/link":     {forAdmin, "name=olga"},
	"person/end":      {forAdmin, "name=olga&id=SESSION"},
	"person/revoke":   {forAdmin, "name=olga&id=TOKEN"},
	"person/passkey":  {forAdmin, "name=olga&id=none"},
	"person/endlink":  {forAdmin, "name=olga&id=none"},
	"person/unlink":   {forAdmin, "name=olga&id=none"},
	"person/password": {forAdmin, "name=olga"},
}

// TestFormRoles: each form of the desk says here who may use it. A visitor without a session can use none that needs one, and users with less than the least role are
// refused, and change nothing. What those may do who have the role, other tests do.
func TestFormRoles(t *testing.T) {
	s := newLinkSite(t)
	var forms []string
	closed := make(map[string]bool)
	for pattern := range s.handler.open() {
		forms = append(forms, pattern)
	}
	for pattern := range s.handler.closed() {
		forms, closed[pattern] = append(forms, pattern), true
	}
	seen := 0
	var session string
	users := []string{"sam", "ruth", "ed", "olga"}
	roles := []int{forUsers, forReader, forEditor, forOwner}
	must(s.r.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error { ns.Reviewed = true; return nil }))(t)
	must(s.r.Register(s.admin, &stele.Record{ID: must(s.names.Parse("ark:12345/x5a"))(t), State: stele.Active, Targets: target(1)}))(t)
	changes := func() string { // of records and namespaces
		t.Helper()
		rec := must(s.r.Get(s.admin, must(s.names.Parse("ark:12345/x5a"))(t)))(t)
		ns := must(s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t)
		count := must(s.store.Count(t.Context(), ns.Key()))(t)
		sessions, tokens := 0, 0
		for _, err := range s.r.Sessions(s.admin, "admin") {
			must(0, err)(t)
			sessions++
		}
		for token, err := range s.r.Tokens(s.admin, "admin") {
			must(0, err)(t)
			if token.Revoked.IsZero() {
				tokens++
			}
		}
		return fmt.Sprintf("version %d of the record, %d names, namespace %+v, %d sessions and %d tokens of admin", rec.Version, count, ns, sessions, tokens)
	}
	browsers := make([]*browser, len(users))
	for i, user := range users {
		browsers[i] = s.as(user)
	}
	s.as("admin")
	for one, err := range s.r.Sessions(s.admin, "admin") {
		if err != nil {
			t.Fatal(err)
		}
		session = one.ID
	}
	_, token, err := s.r.CreateToken(s.admin, auth.TokenRequest{User: "admin", Label: "of the administrator", Scopes: []auth.Scope{auth.ScopeRead}})
	if err != nil || session == "" {
		t.Fatal(session, err)
	}
	proposal := must(s.r.Propose(auth.With(t.Context(), must(s.users.Principal(t.Context(), "olga"))(t)), registrar.Proposal{Base: 1, Record: &stele.Record{ID: must(s.names.Parse("ark:12345/x5a"))(t), State: stele.Active, Targets: target(2)}}))(t)
	before := changes()
	ids := strings.NewReplacer("SESSION", session, "TOKEN", token.ID, "PROPOSAL", proposal.ID)
	slices.Sort(forms)
	for _, pattern := range forms {
		name, is := strings.CutPrefix(pattern, "POST "+Root)
		if !is {
			continue
		}
		seen++
		row, ok := formRoles[name]
		switch {
		case !ok:
			t.Errorf("formRoles does not say who may use %s", pattern)
			continue
		case closed[pattern] != (row.least != forAll):
			t.Errorf("%s needs a session: %v", pattern, closed[pattern])
		case row.least == forAll:
			continue
		}
		form, err := url.ParseQuery(ids.Replace(row.form))
		if err != nil {
			t.Fatal(err)
		}
		path := Root + strings.NewReplacer("{id}", "none", "{name}", "none").Replace(name)
		if p := s.browser().post(path, form); p.StatusCode != http.StatusUnauthorized && !strings.HasPrefix(p.Header.Get("Location"), Root+"sign-in") {
			t.Errorf("%s without a session: %s", path, p.Status)
		}
		for i, user := range users {
			if roles[i] >= row.least {
				break
			}
			if p := browsers[i].post(path, form); p.StatusCode < 400 || p.StatusCode >= 500 {
				t.Errorf("%s by %s: %s to %s", path, user, p.Status, p.Header.Get("Location"))
			}
			if now := changes(); now != before {
				t.Fatalf("%s by %s changed something:\n%s\n%s", path, user, before, now)
			}
		}
	}
	if seen != len(formRoles) {
		t.Errorf("there are %d forms, and formRoles has %d", seen, len(formRoles))
	}
}
