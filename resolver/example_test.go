package resolver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

func Example() {
	ctx := context.Background()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := schemes.Parse("urn:paradisec:AB1:001:A")
	if err != nil {
		fmt.Println(err)
		return
	}
	store := mem.New(time.Now)
	err = store.Apply(ctx, &stele.Commit{Records: []*stele.Record{{
		ID: id, Version: 1, State: stele.Active,
		Targets: []stele.Target{
			{Service: stele.N2L, URL: "https://example.org/a.html", Type: "text/html"},
			{Service: stele.N2L, URL: "https://example.org/a.wav", Type: "audio/wav"},
		},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}

	r := resolver.New(store, schemes, resolver.Options{Now: time.Now, Random: rand.IntN, CacheBytes: 64 << 20})
	accept, err := resolver.ParseAccept("audio/mpeg, video/*;q=0.5")
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := r.Resolve(ctx, resolver.Request{ID: id, Accept: accept})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Kind, res.Status, res.URL, res.Fit)
	// Output:
	// redirect 302 https://example.org/a.wav similar
}
