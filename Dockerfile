# Two images: `docker build --target controller .` and `--target proxy`. Bundled with the project's own tools, run as an
# unprivileged user. The bundle needs no node_modules and writes nothing, so the root file system can be read-only.
# `make image` packs the same without Docker.
FROM node:24-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY tools/node/package.json tools/node/
# As `make install` does: npm ci refuses a lock file without the packages of other platforms.
RUN npm install --no-save --no-audit --no-fund --ignore-scripts
COPY . .
RUN npm run build

FROM node:24-slim AS program
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/bin bin
COPY --from=build /src/dist dist
USER 10101

FROM program AS controller
ENTRYPOINT ["node", "--enable-source-maps", "/app/bin/gwproxy.mjs", "controller"]

FROM program AS proxy
ENTRYPOINT ["node", "--enable-source-maps", "/app/bin/gwproxy.mjs", "proxy"]
