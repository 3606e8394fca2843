package bundle

import _ "embed"

// readme is data/README.txt: what a stranger needs to read a bundle.
//
//go:embed README.txt
var readme string
