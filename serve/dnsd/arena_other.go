//go:build !unix

package dnsd

func newArena(size int) []byte { return make([]byte, size) }

func freeArena([]byte) {}
