package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// sample is a request that an operation grants, at a new site, to a caller with the right
// that it asks for.
type sample struct {
	target string // below Root
	body   string
	head   []string
}

// samples has a request for each operation. They are about ark:12345, in which the
// roles of a site are.
var samples = map[string]sample{
	"getRecord":         {target: "/records/ark:12345/x1"},
	"putRecord":         {target: "/records/ark:12345/new", body: `{"url":"https://example.org/new"}`, head: []string{"If-None-Match", "*"}},
	"patchRecord":       {target: "/records/ark:12345/x1", body: `{"metadata":{"who":"Ann"}}`},
	"deleteRecord":      {target: "/records/ark:12345/x1?reason=Wrong"},
	"withdrawRecord":    {target: "/withdraw/ark:12345/x1", body: `{"reason":"Wrong"}`},
	"reinstateRecord":   {target: "/reinstate/ark:12345/gone"},
	"redactRecord":      {target: "/redact/ark:12345/x1", body: `{"reason":"Court"}`},
	"getProof":          {target: "/proof/ark:12345/x1"},
	"getLog":            {target: "/log"},
	"changeLogKeys":     {target: "/log", body: `{"do":"roll"}`},
	"listRecords":       {target: "/records?prefix=ark:12345"},
	"searchRecords":     {target: "/search?q=thing"},
	"statistics":        {target: "/statistics?prefix=ark:12345"},
	"usageBreakdown":    {target: "/usagebreakdown?prefix=ark:12345&by=country"},
	"unusedNames":       {target: "/unusednames?prefix=ark:12345"},
	"beginUsageLog":     {target: "/usagelogs"},
	"addUsageLog":       {target: "/usagelogs/", body: "x", head: []string{"Content-Type", bytesType}},
	"countUsageLog":     {target: "/usagelogs/", body: `{"name":"access.log","size":0}`},
	"dropUsageLog":      {target: "/usagelogs/"},
	"usageReport":       {target: "/usagereport?prefix=ark:12345"},
	"getHistory":        {target: "/history/ark:12345/x1"},
	"listNamespaces":    {target: "/namespaces"},
	"getNamespace":      {target: "/namespaces/ark:12345"},
	"putNamespace":      {target: "/namespaces/ark:12345/q7", body: `{"title":"New"}`, head: []string{"If-None-Match", "*"}},
	"testRules":         {target: "/rules/ark:12345/x5", body: `{"names":["ark:12345/x5007"]}`},
	"tryNamespace":      {target: "/try/ark:12345/q7", body: `{"minter":{"kind":"noid","template":".reeeedk"}}`},
	"patchNamespace":    {target: "/namespaces/ark:12345/x5", body: `{"title":"New"}`},
	"listHandOvers":     {target: "/handover"},
	"getHandOver":       {target: "/handover/ark:12345"},
	"changeHandOver":    {target: "/handover/ark:12345", body: offer},
	"checkHeir":         {target: "/heir/ark:12345"},
	"listWatches":       {target: "/watches"},
	"addWatch":          {target: "/watches", body: `{"origin":"giver.example.org/.log","url":"http://127.0.0.1:1","keys":["giver.example.org/.log+a6f29693+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"]}`},
	"removeWatch":       {target: "/watches/giver.example.org/.log"}, // that was added; see below
	"askWatched":        {target: "/watch-now/giver.example.org/.log"},
	"planSeal":          {target: "/sealplan/ark:12345"},
	"listPURLHosts":     {target: "/purl-hosts"},
	"addPURLHosts":      {target: "/purl-hosts", body: `{"hosts":["purl.example.org"]}`},
	"getMinter":         {target: "/minters/ark:12345/x5"},
	"checkNamespace":    {target: "/check/ark:12345/x5"},
	"skip":              {target: "/skip/ark:12345/x5", body: `{"ahead":10}`},
	"listZones":         {target: "/zones"},
	"checkSecondaries":  {target: "/secondaries/ark.example."},
	"raiseZone":         {target: "/zones/ark.example.", body: `{"above":7}`},
	"getZoneKeys":       {target: "/zonekeys/ark:12345"},
	"exportZone":        {target: "/zonefiles/ark:12345"},
	"changeZoneKeys":    {target: "/zonekeys/ark:12345", body: `{"do":"sign","mode":"online"}`},
	"listTSIGKeys":      {target: "/tsig"},
	"addTSIGKey":        {target: "/tsig", body: `{"name":"ns2.example.net"}`},
	"retireTSIGKey":     {target: "/tsig/ns2.example.net."},
	"getSecretKeys":     {target: "/secrets"},
	"rotateSecrets":     {target: "/secrets", body: `{}`},
	"putRecords":        {target: "/records", body: `[{"id":"ark:12345/b1","url":"https://example.org/1"}]`},
	"importRecords":     {target: "/import", body: `{"id":"ark:12345/b1","url":"https://example.org/1"}` + "\n", head: []string{"Content-Type", apijson.Lines}},
	"getImport":         {target: "/import/nightly"},
	"listImports":       {target: "/imports"},
	"beginImport":       {target: "/imports", body: `{"label":"maps.csv"}`},
	"showImport":        {target: "/imports/1"},
	"revertImport":      {target: "/revert-import/1"},
	"revertRecord":      {target: "/revert/ark:12345/x1", body: `{"to":1}`},
	"replaceTargets":    {target: "/replace", body: `{"from":"https://example.org/1","to":"https://new.example.org/1","expect":1}`},
	"exportRecords":     {target: "/export?prefix=ark:12345"},
	"mint":              {target: "/mint", body: `{"namespace":"ark:12345/x5"}`},
	"listHarvests":      {target: "/harvests"},
	"listDeposits":      {target: "/escrow"},
	"addHarvest":        {target: "/harvests", body: `{"name":"theses","url":"https://example.org/oai","namespace":"ark:12345"}`},
	"stopHarvest":       {target: "/harvests/theses"}, // that was added; see below
	"askHarvest":        {target: "/harvest-now/theses", body: `{"yes":true}`},
	"listProposals":     {target: "/proposals"},
	"propose":           {target: "/proposals", body: `{"record":{"id":"ark:12345/proposed","url":"https://example.org/1"},"note":"It is new"}`},
	"getProposal":       {target: "/proposals/"}, // of an editor; see below
	"approveProposal":   {target: "/approve/"},
	"declineProposal":   {target: "/decline/", body: `{"reason":"It is wrong"}`},
	"getLinkChecks":     {target: "/linkchecks/ark:12345"},
	"getUsageSettings":  {target: "/usagesettings/ark:12345"},
	"putUsageSettings":  {target: "/usagesettings/ark:12345", body: `{"countAll":true}`},
	"putLinkChecks":     {target: "/linkchecks/ark:12345", body: `{"on":true,"own":[{"host":"data.example.org","gap":500}]}`},
	"listLinkFindings":  {target: "/linkfindings?prefix=ark:12345"},
	"listLinkHosts":     {target: "/linkhosts?prefix=ark:12345"},
	"getLinkOverview":   {target: "/linkoverview?prefix=ark:12345"},
	"getLinkFeed":       {target: "/linkfeed?prefix=ark:12345"},
	"acceptMoved":       {target: "/acceptmoved"}, // see below
	"checkLinks":        {target: "/checklinks", body: `{"ids":["ark:12345/x1"]}`},
	"lookAtLink":        {target: "/looked/ark:12345/x1", body: ``},
	"getMe":             {target: "/me"},
	"listUsers":         {target: "/users"},
	"addUser":           {target: "/users", body: `{"name":"zoe"}`},
	"getUser":           {}, // oneself; see below
	"patchUser":         {target: "/users/nemo", body: `{"groups":["staff"]}`},
	"listTokens":        {target: "/tokens"},
	"createToken":       {target: "/tokens", body: `{"label":"another"}`},
	"createLink":        {target: "/links", body: `{"user":"nemo"}`},
	"invite":            {target: "/invitations", body: `{"name":"zoe","namespace":"ark:12345","role":"reader"}`},
	"listLinks":         {target: "/links"},
	"endLink":           {target: "/links/"}, // one that is there; see below
	"listAccounts":      {target: "/accounts"},
	"unlinkAccount":     {target: "/accounts/"}, // one's own; see below
	"listPasskeys":      {target: "/passkeys"},
	"renamePasskey":     {target: "/passkeys/", body: `{"name":"Tablet"}`}, // the same
	"removePasskey":     {target: "/passkeys/"},
	"removePassword":    {target: "/passwords/nemo"},
	"revokeToken":       {}, // one's own; see below
	"openToken":         {}, // the same
	"getStatus":         {target: "/status"},
	"listChanges":       {target: "/changes"},
	"listAudit":         {target: "/audit?namespace=ark:12345"},
	"verify":            {target: "/verify"},
	"backup":            {target: "/backup"},
	"getBundle":         {target: "/bundle?prefix=ark:12345"},
	"listBundles":       {target: "/bundles"},
	"noteBundleCheck":   {target: "/bundles", body: `{"manifest":"00"}`}, // that was made; see below
	"restore":           {target: "/restore?confirm=stele-data", body: "x", head: []string{"Content-Type", apijson.Tar}},
	"getPage":           {},
	"getOpenAPI":        {target: "/openapi.json"},
	"getHandleSite":     {target: "/handlesite"},
	"rollHandleSite":    {target: "/handlesite"},
	"setUpHandlePrefix": {target: "/handleprefixes/20.500.12345", body: `{"addresses":["192.0.2.7"]}`},
}

// judgesEach are operations that judge each record in the body by itself: a caller that may
// write none of them gets an answer that says so of each.
var judgesEach = []string{"putRecords", "importRecords"}

// notThere are operations that answer callers without a role as if the thing did not exist.
var notThere = []string{"getNamespace", "testRules", "getNamespaceHistory", "patchNamespace", "getMinter", "checkNamespace", "getZoneKeys", "changeZoneKeys", "getLinkChecks", "putLinkChecks", "getUsageSettings", "putUsageSettings", "getProposal", "approveProposal", "declineProposal", "noteBundleCheck"}

// unkept are operations that need what only a whole server has: at this site they answer that
// it is not there.
var unkept = []string{"backup", "getBundle", "restore", "exportZone", "getZoneKeys", "changeZoneKeys", "listTSIGKeys", "addTSIGKey", "retireTSIGKey", "checkSecondaries", "getSecretKeys", "rotateSecrets", "getHandleSite", "rollHandleSite", "setUpHandlePrefix"}

// sampleOf returns the request of an operation for a user.
func sampleOf(t *testing.T, s *site, op *operation, who string) sample {
	t.Helper()
	x, ok := samples[op.name]
	if !ok {
		x, ok = versionSamples[op.name]
	}
	if !ok {
		t.Fatalf("the operation %s has no sample in this test: add one, and see that its rights are right", op.name)
	}
	switch op.name {
	case "addUsageLog", "countUsageLog", "dropUsageLog":
		id, err := s.handler.o.UsageLogs.Begin()
		if err != nil {
			t.Fatal(err)
		}
		x.target += id
		if op.name == "addUsageLog" {
			x.target += "?at=0"
		}
	case "checkHeir", "planSeal": // of what is offered
		s.ask(theAdmin, "POST", Root+"/handover/ark:12345", offer).want(t, http.StatusOK)
	case "getProof", "changeLogKeys":
		s.signLog()
	case "statistics": // the figures of the namespace are public
		s.ask(theAdmin, "PUT", Root+"/usagesettings/ark:12345", `{"public":true}`).want(t, http.StatusOK)
	case "disavowVersions", "revertRecord": // of a record that was changed since
		s.ask(theAdmin, "PATCH", Root+"/records/ark:12345/x1", `{"metadata":{"who":"Eve"}}`, "Content-Type", apijson.MergePatch).want(t, http.StatusOK)
	case "getZoneKeys", "changeZoneKeys", "listZones", "raiseZone", "checkSecondaries":
		s.ask(theAdmin, "PATCH", Root+"/namespaces/ark:12345", `{"publication":{"zone":"ark.example.","layout":"names","separator":"/","parts":1}}`, "Content-Type", apijson.MergePatch).want(t, http.StatusOK)
	case "showImport", "revertImport": // one of their own
		if who != "" && who != "wrong" {
			if who == theOutsider || who == theStranger || who == theReader {
				who = theEditor // a user who may write nowhere has no import, and does not see those of others
			}
			s.ask(who, "POST", Root+"/imports", `{"label":"maps.csv"}`).want(t, http.StatusCreated)
		}
	case "acceptMoved": // of a target that was found to have moved
		x.body = s.move("ark:12345/x1", "https://example.org/1", "https://new.example.org/1")
	case "lookAtLink": // at a target that was checked
		x.body = s.checked("ark:12345/x1", "https://example.org/1")
	case "removePassword": // of a user who has one; what it is does not matter
		if err := s.store.Apply(s.admin, &stele.Commit{Cells: []stele.CellChange{{Name: "password nemo", After: []byte("{}")}}}); err != nil {
			t.Fatal(err)
		}
	case "getProposal", "approveProposal", "declineProposal":
		var made apijson.Proposal
		s.ask(theEditor, "POST", Root+"/proposals", samples["propose"].body).want(t, http.StatusCreated).read(t, &made)
		x.target += made.ID
	case "removeWatch", "askWatched":
		s.ask(theAdmin, "POST", Root+"/watches", samples["addWatch"].body).want(t, http.StatusNoContent)
	case "stopHarvest", "askHarvest":
		s.ask(theAdmin, "POST", Root+"/harvests", samples["addHarvest"].body).want(t, http.StatusNoContent)
	case "noteBundleCheck":
		if err := s.store.Apply(s.admin, &stele.Commit{Cells: []stele.CellChange{{Name: "bundle ark ark:12345", After: []byte(`{"manifest":"00"}`)}}}); err != nil {
			t.Fatal(err)
		}
	case "endLink":
		_, l, err := s.registry.CreateLink(s.admin, theOutsider, 0)
		if err != nil {
			t.Fatal(err)
		}
		x.target += l.ID
	case "unlinkAccount", "renamePasskey", "removePasskey":
		x.target += s.signsIn(cmp.Or(who, theOutsider), op.name != "unlinkAccount")
	case "getUser":
		x.target = "/users/" + cmp.Or(who, theOutsider)
	case "revokeToken", "openToken":
		id := "000000000000"
		if who != "" {
			for token, err := range s.registry.Tokens(s.admin, who) {
				if err != nil {
					t.Fatal(err)
				}
				id = token.ID
			}
		}
		x.target = "/tokens/" + id
	}
	return x
}

// TestRoles sends a request to each operation as every caller. Only the operation's right
// decides which callers get an answer.
func TestRoles(t *testing.T) {
	ranks := map[string]right{"": anyone, theOutsider: known, theStranger: known, theReader: reader, theEditor: editor, theOwner: owner, theAdmin: administrator}
	callers := []string{"", theOutsider, theStranger, theReader, theEditor, theOwner, theAdmin}
	table := newSite(t).handler.table
	for i := range table {
		op := &table[i]
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			for _, who := range callers {
				s := newSite(t)
				x := sampleOf(t, s, op, who)
				a := s.ask(who, op.method, Root+x.target, x.body, x.head...)
				if want := expected(op, who, ranks[who]); !slices.Contains(want, a.StatusCode) {
					t.Errorf("as %q: %d, want %v: %s", who, a.StatusCode, want, a.body)
				}
			}
			for name, token := range wrongTokens() {
				s := newSite(t)
				s.tokens["wrong"] = token(s)
				x := sampleOf(t, s, op, "")
				a := s.ask("wrong", op.method, Root+x.target, x.body, x.head...).want(t, http.StatusUnauthorized)
				if a.get("WWW-Authenticate") == "" {
					t.Errorf("%s: nothing says how to be known", name)
				}
			}
		})
	}
}

// sitesFor returns a function that returns a site to try an operation at: always the same one for an operation that changes nothing.
func sitesFor(t *testing.T, op *operation) func() *site {
	if op.method != http.MethodGet {
		return func() *site { return newSite(t) }
	}
	return sync.OnceValue(func() *site { return newSite(t) })
}

// TestScopes sends a request to each operation by an administrator's tokens: one for each
// scope, one that is limited to the namespace of the samples, and one that is limited to
// another namespace. Each does what its scopes say in its namespaces, and nothing else.
func TestScopes(t *testing.T) {
	type limited struct {
		scopes     []auth.Scope
		namespaces []string
	}
	tokens := map[string]limited{
		"here":         {nil, []string{"ark:12345"}},
		"elsewhere":    {nil, []string{"ark:99999"}},
		"writes here":  {[]auth.Scope{auth.ScopeWrite}, []string{"ark:12345"}},
		"backups here": {[]auth.Scope{auth.ScopeBackup}, []string{"ark:12345"}},
		"mints there":  {[]auth.Scope{auth.ScopeMint}, []string{"ark:99999"}},
	}
	for _, s := range auth.Scopes() {
		tokens[string(s)] = limited{[]auth.Scope{s}, nil}
	}
	table := newSite(t).handler.table
	for i := range table {
		op := &table[i]
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			if op.scope != anyScope && !op.scope.IsValid() {
				t.Fatalf("the table does not say which scope %s needs", op.name)
			}
			site := sitesFor(t, op)
			for name, limits := range tokens {
				s := site()
				credential, made, err := s.registry.CreateToken(s.admin, auth.TokenRequest{User: theAdmin, Scopes: limits.scopes, Namespaces: limits.namespaces})
				if err != nil {
					t.Fatal(err)
				}
				s.tokens[name] = credential
				x := sampleOf(t, s, op, theAdmin)
				if op.name == "revokeToken" {
					x.target = "/tokens/" + made.ID
				}
				a := s.ask(name, op.method, Root+x.target, x.body, x.head...)
				has := len(limits.scopes) == 0 || op.scope == anyScope || limits.scopes[0].Includes(op.scope)
				if want := expectedOf(op, limits.namespaces, has); !slices.Contains(want, a.StatusCode) {
					t.Errorf("by the token %q: %d, want %v: %s", name, a.StatusCode, want, a.body)
				}
			}
		})
	}
}

// expectedOf returns which statuses are right for a token of an administrator that is
// limited to namespaces, and has the scope of the operation or not.
func expectedOf(op *operation, namespaces []string, has bool) []int {
	there := slices.Contains(namespaces, "ark:99999")
	switch {
	case there && has && op.name == "replaceTargets":
		return []int{http.StatusConflict}
	case op.asks == anyone:
		return []int{http.StatusOK}
	case !has:
		return []int{http.StatusForbidden}
	case namespaces != nil && slices.Contains([]string{"listAccounts", "unlinkAccount", "listPasskeys"}, op.name): // a limited token does not change how its user signs in
		return []int{http.StatusForbidden}
	case namespaces != nil && strings.HasSuffix(op.name, "Passkey"):
		return []int{http.StatusNotFound}
	case op.asks == administrator && namespaces != nil:
		return []int{http.StatusForbidden}
	case there && op.asks > known && slices.Contains(judgesEach, op.name):
		return []int{http.StatusOK, http.StatusForbidden}
	case there && op.asks > known && slices.Contains(notThere, op.name):
		return []int{http.StatusNotFound}
	case there && op.asks > known:
		return []int{http.StatusForbidden}
	}
	return expected(op, theAdmin, administrator)
}

// A token without the scope read sees no more than the public, wherever records are shown.
func TestScopeHidesRecords(t *testing.T) {
	s := newSite(t)
	for _, user := range []string{theAdmin, theReader} {
		for _, limits := range []auth.TokenRequest{
			{Scopes: []auth.Scope{auth.ScopeMetrics}},
			{Scopes: []auth.Scope{auth.ScopeMint}},
		} {
			limits.User = user
			s.tokens["x"] = s.made(s.admin, limits)
			for _, name := range []string{"ark:12345/hidden", "ark:12345/secret"} {
				s.ask("x", "GET", records+name, "").want(t, http.StatusNotFound)
				s.ask("x", "GET", Root+"/history/"+name, "").want(t, http.StatusNotFound)
				s.ask(user, "GET", records+name, "").want(t, http.StatusOK)
			}
		}
	}
	s.tokens["x"] = s.made(s.admin, auth.TokenRequest{User: theAdmin, Namespaces: []string{"ark:99999"}})
	s.ask("x", "GET", records+"ark:12345/secret", "").want(t, http.StatusNotFound)
}

// expected returns which statuses are right.
func expected(op *operation, who string, rank right) []int {
	switch {
	case op.asks != anyone && rank == anyone:
		return []int{http.StatusUnauthorized}
	case op.name == "beginImport" && rank < editor: // a role anywhere will do
		return []int{http.StatusCreated, http.StatusForbidden}
	case op.name == "replaceTargets" && rank < editor: // they can change no record, and expect one
		return []int{http.StatusConflict}
	case (op.name == "showImport" || op.name == "revertImport") && rank < editor:
		return []int{http.StatusNotFound}
	case rank < op.asks && op.name == "noteBundleCheck": // only owners know of it
		return []int{http.StatusNotFound}
	case rank < op.asks && strings.HasSuffix(op.name, "Proposal"): // only those who may write, or have made it, know of it
		return []int{http.StatusNotFound}
	case rank < op.asks && slices.Contains(judgesEach, op.name):
		return []int{http.StatusOK, http.StatusForbidden}
	case rank < op.asks && rank == known && slices.Contains(notThere, op.name):
		return []int{http.StatusNotFound}
	case rank < op.asks:
		return []int{http.StatusForbidden}
	case slices.Contains(unkept, op.name):
		return []int{http.StatusNotFound}
	}
	return []int{http.StatusOK, http.StatusCreated, http.StatusNoContent}
}

// wrongTokens are tokens that are unknown, or not valid any more.
func wrongTokens() map[string]func(*site) string {
	return map[string]func(*site) string{
		"forged": func(s *site) string { return s.tokens[theAdmin][:len(s.tokens[theAdmin])-4] + "AAAA" },
		"no token": func(*site) string {
			return "root"
		},
		"expired": func(s *site) string {
			token := s.token(theAdmin, s.now().Add(time.Minute))
			s.pass(time.Hour)
			return token
		},
		"revoked": func(s *site) string {
			credential, made, err := s.registry.CreateToken(s.admin, auth.TokenRequest{User: theAdmin, Expires: s.now().Add(time.Hour)})
			if err != nil {
				s.t.Fatal(err)
			}
			if _, err := s.registry.RevokeToken(s.admin, made.ID); err != nil {
				s.t.Fatal(err)
			}
			return credential
		},
		"whose parent is revoked": func(s *site) string {
			s.tokens["parent"] = s.token(theAdmin, s.now().Add(time.Hour))
			child, grandchild := s.child("parent", `{}`), ""
			s.tokens["child"] = child.Credential
			grandchild = s.child("child", `{"user":"`+theOwner+`"}`).Credential
			s.ask(theAdmin, "DELETE", Root+"/tokens/"+child.Token.Parent, "").want(s.t, 200)
			return grandchild
		},
		"whose maker is disabled": func(s *site) string {
			s.ask(theAdmin, "POST", Root+"/users", `{"name":"zack","admin":true}`).want(s.t, 201)
			s.tokens["zack"] = s.token("zack", s.now().Add(time.Hour))
			made := s.child("zack", `{"user":"`+theOwner+`"}`).Credential
			s.ask(theAdmin, "PATCH", Root+"/users/zack", `{"disabled":true}`).want(s.t, 200)
			return made
		},
		"of a disabled user": func(s *site) string {
			s.ask(theAdmin, "PATCH", Root+"/users/"+theOwner, `{"disabled":true}`).want(s.t, 200)
			return s.tokens[theOwner]
		},
	}
}

// TestRefusedWritesNothing holds that operations that judge each record refuse those that the
// caller may not write.
func TestRefusedWritesNothing(t *testing.T) {
	for _, name := range judgesEach {
		for _, who := range []string{theOutsider, theStranger, theReader} {
			s := newSite(t)
			x := samples[name]
			s.ask(who, "POST", Root+x.target, x.body, x.head...)
			s.ask(theAdmin, "GET", records+"ark:12345/b1", "").want(t, http.StatusNotFound)
		}
	}
}
