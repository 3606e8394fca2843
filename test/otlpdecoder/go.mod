module github.com/stele-id/stele/test/otlpdecoder

go 1.26.0

require (
	go.opentelemetry.io/proto/slim/otlp v1.9.0
	google.golang.org/protobuf v1.36.12
)
