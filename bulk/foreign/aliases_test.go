package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
)

// aliased returns a batch in which handles are aliases: A>B is an alias of B.
func aliased(pairs ...string) string {
	var b strings.Builder
	for _, pair := range pairs {
		from, to, _ := strings.Cut(pair, ">")
		fmt.Fprintf(&b, "CREATE 20.500.1/%s\n1 HS_ALIAS 86400 1110 UTF8 %s\n\n", from, to)
	}
	return b.String()
}

// TestAliasCycles checks that handles that are aliases of one another are imported, as their server has them, and that each cycle is told
// once, with the line where it begins.
func TestAliasCycles(t *testing.T) {
	const told = "line %d: the handle 20.500.1/%s is an alias that leads back to itself (%s), so that it leads nowhere; correct one of the values of type HS_ALIAS\n"
	way := func(names ...string) string { return "20.500.1/" + strings.Join(names, " -> 20.500.1/") }
	var long []string
	for i := range 8 {
		long = append(long, fmt.Sprintf("L%d>20.500.1/L%d", i, (i+1)%8))
	}
	for _, tt := range []struct{ name, text, want string }{
		{"chain", aliased("A>20.500.1/B", "B>20.500.1/C", "D>20.500.1/B", "E>hdl:20.500.9/elsewhere") + "CREATE 20.500.1/C\n1 URL 86400 1110 UTF8 https://example.org/\n", ""},
		{"itself", aliased("A>20.500.1/a"), fmt.Sprintf(told, 1, "A", way("A", "A"))},
		{"two, and one that leads there", aliased("Z>20.500.1/B", "B>20.500.1/c", "C>hdl:20.500.1/b"), fmt.Sprintf(told, 4, "B", way("B", "C", "B"))},
		{"entered late", aliased("Z>20.500.1/C", "B>20.500.1/C", "C>20.500.1/B"), fmt.Sprintf(told, 4, "B", way("B", "C", "B"))},
		{"two cycles", aliased("A>20.500.1/B", "B>20.500.1/A", "C>20.500.1/C"), fmt.Sprintf(told, 1, "A", way("A", "B", "A")) + fmt.Sprintf(told, 7, "C", way("C", "C"))},
		{"long", aliased(long...), fmt.Sprintf(told, 1, "L0", way("L0", "L1", "L2", "L3", "L4")+" -> ... -> "+way("L0"))},
		{"hidden value", "CREATE 20.500.1/A\n1 HS_ALIAS 86400 1100 UTF8 20.500.1/A\n2 URL 86400 1110 UTF8 https://example.org/\n", ""},
		{"type below", "CREATE 20.500.1/A\n1 hs_alias.x 86400 1110 UTF8 20.500.1/A\n", fmt.Sprintf(told, 1, "A", way("A", "A"))},
	} {
		rows, report, err := read(t, foreign.Options{}, []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Err != nil {
				t.Errorf("%s: %v", tt.name, row.Err)
			}
		}
		got := ""
		for _, n := range report.Notes {
			got += n.Error() + "\n"
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %swant %s", tt.name, got, tt.want)
		}
	}
}

// TestAliasCycleRegistered checks that a cycle is found, too, if a part of it is registered already, and that registered handles are
// asked for a bounded number of times.
func TestAliasCycleRegistered(t *testing.T) {
	id := func(name string) stele.ID {
		id, err := known.Parse("hdl:20.500.1/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	asked := 0
	get := func(name stele.ID) (*stele.Record, error) {
		asked++
		switch name {
		case id("B"):
			return &stele.Record{ID: name, State: stele.Active, Values: []stele.HandleValue{{Index: 1, Type: "HS_ALIAS", Data: []byte("20.500.1/A"), Permissions: stele.DefaultPermissions}}}, nil
		case id("W"):
			return &stele.Record{ID: name, State: stele.Withdrawn, Values: []stele.HandleValue{{Index: 1, Type: "HS_ALIAS", Data: []byte("20.500.1/V"), Permissions: stele.DefaultPermissions}}}, nil
		}
		return nil, &stele.Error{Op: "get", Kind: stele.NotFound}
	}
	pairs := []string{"A>20.500.1/B", "V>20.500.1/W"}
	for i := range 2000 {
		pairs = append(pairs, fmt.Sprintf("X%d>20.500.1/Y%d", i, i))
	}
	_, report, err := read(t, foreign.Options{Registered: foreign.Registered{Get: get}}, []byte(aliased(pairs...)))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Notes) != 1 || !strings.HasPrefix(report.Notes[0].Error(), "line 1: the handle 20.500.1/A is an alias that leads back to itself (20.500.1/A -> 20.500.1/B -> 20.500.1/A)") {
		t.Errorf("%v", report.Notes)
	}
	if asked < 1000 || asked > 1010 {
		t.Errorf("registered handles were asked for %d times", asked)
	}
}
