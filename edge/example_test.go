package edge_test

import (
	"fmt"
	"log"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
)

func ExampleRender() {
	config, err := site.Config{}.WithDefaults() // usually read from the root of a site
	if err != nil {
		log.Fatal(err)
	}
	files, err := edge.Render(edge.Nginx, edge.Options{
		Config: config, Bucket: "https://bucket.s3.eu-central-1.amazonaws.com", Fallback: "http://127.0.0.1:8081",
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Name)
	}
	// Output:
	// followpress.conf
	// followpress.js
}
