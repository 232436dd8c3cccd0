package edge

// Worker is a Cloudflare Worker.
const Worker Kind = "worker"

func init() {
	definitions[Worker] = definition{
		outputs: [][2]string{{"worker.js", "worker.js"}, {"wrangler.toml", "wrangler.toml"}},
		parts:   []string{"resolve.js"},
	}
}
