package all_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/purl"
)

func ExampleNew() {
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: purl.DefaultHosts()})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := schemes.Parse("https://n2t.net/ark:/12148/cb-1192-8669t")
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := schemes.Parse("ark:12148/cb11928669t")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a == b, a.Scheme(), a)

	_, err = schemes.Parse("ark:12148/cb11928696t")
	if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok {
		fmt.Println(errors.Is(err, stele.Invalid), syntax.Pos, syntax.Suggestions[0])
	}
	// Output:
	// true ark ark:12148/cb11928669t
	// true 20 ark:12148/cb11928669t
}
