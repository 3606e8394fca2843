package access

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
)

// TestSearch searches a registry here and at a server: over several pages, and by each part of a
// query.
func TestSearch(t *testing.T) {
	onBoth(t, func(ctx context.Context, t *testing.T, l *Registry) {
		var names []string
		for i := range 1100 {
			names = append(names, fmt.Sprintf("ark:12345/n%d", i))
		}
		register(ctx, t, l, "https://a.example.org/rivers", names...)
		register(ctx, t, l, "https://b.example.org/rivers", "urn:example:1")
		slices.Reverse(names)
		all := append([]string{"urn:example:1"}, names...)
		ark := stele.NamespaceKey{Scheme: "ark"}
		for _, tt := range []struct {
			q    remote.SearchQuery
			want []string
		}{
			{remote.SearchQuery{Text: "rivers"}, all},
			{remote.SearchQuery{Text: "rivers", Limit: 3}, all[:3]},
			{remote.SearchQuery{Text: "rivers", Limit: 1050}, all[:1050]},
			{remote.SearchQuery{Text: "rivers", Namespace: ark, Limit: 2}, names[:2]},
			{remote.SearchQuery{Host: "B.example.org"}, all[:1]},
			{remote.SearchQuery{Text: "riv* b.example.org", State: stele.Active, Visibility: "public", By: "root"}, all[:1]},
			{remote.SearchQuery{Text: "rivers", State: stele.Reserved}, nil},
			{remote.SearchQuery{Text: "rivers", Visibility: "restricted"}, nil},
			{remote.SearchQuery{Text: "rivers", By: "ann"}, nil},
			{remote.SearchQuery{Text: "rivers", Before: time.Now().Add(-time.Hour)}, nil},
			{remote.SearchQuery{Text: "rivers", From: time.Now().Add(time.Hour)}, nil},
			{remote.SearchQuery{Text: "ark:/12345/n-7"}, []string{"ark:12345/n7"}},
		} {
			var got []string
			for rec, err := range l.Search(ctx, tt.q) {
				if err != nil {
					t.Fatalf("%+v: %v", tt.q, err)
				}
				got = append(got, rec.ID.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%+v: got %d, %.200q", tt.q, len(got), got)
			}
		}
		for _, err := range l.Search(ctx, remote.SearchQuery{Text: "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8"}) {
			if stele.KindOf(err) != stele.Invalid {
				t.Errorf("got %v", err)
			}
		}
	})
}
