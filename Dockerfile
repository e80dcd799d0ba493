# Two stages: bundle with the project's own tools, then run as an unprivileged user. The bundle needs no node_modules
# and writes nothing, so the root file system can be read-only.
FROM node:24-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run build

FROM node:24-slim
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/bin bin
COPY --from=build /src/dist dist
USER 10101
ENTRYPOINT ["node", "--enable-source-maps", "bin/gwproxy.mjs"]
